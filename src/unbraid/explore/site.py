"""The pages of a study or a run, served to one reader: every run's page, scores on demand, results as they come."""

import hashlib
import os
import threading
from collections.abc import Collection, Mapping
from contextlib import AbstractContextManager, suppress
from dataclasses import replace
from pathlib import Path
from typing import Any
from urllib.parse import quote

from unbraid.explore.jobs import Jobs
from unbraid.explore.server import Refused, Reply, as_json, file_within, html
from unbraid.metrics import METRICS
from unbraid.report.page import page_content as card_content
from unbraid.report.rendering import render
from unbraid.runs.folder import find_codes, read_codes, read_folder
from unbraid.runs.foreign import check_not_fitted
from unbraid.runs.page import run_content
from unbraid.runs.pictures import picture_or_reason
from unbraid.runs.run import open_run
from unbraid.scoring.card import ScoreCard
from unbraid.storage.remote import changing
from unbraid.storage.run_files import CONFIG, SCORES, WEIGHTS
from unbraid.studies.kept_scores import missing_metrics, read_scores
from unbraid.studies.page import page_content, study_data
from unbraid.studies.results import results
from unbraid.studies.scores import complete_scores, wanted_scores
from unbraid.studies.several_page import studies_page
from unbraid.studies.store import ADDED, RUNS, YAML
from unbraid.studies.study import Study, open_study

SHOWN_AS_TEXT = {".json", ".yaml", ".csv", ".txt"}
# Metrics of one representation: UDR compares many, and a gap cannot be asked for.
ON_DEMAND = tuple(name for name in METRICS if name != "zero_shot")


class RunSite:
    """What the server of a run answers.

    Paths: `/` the page of the run; `/files/...` its folder; `/jobs` the scores that were asked for, by POST of
    {"run": ..., "metric": ...} to `/score`.
    """

    def __init__(self, folder: Path, trust: Collection[str] = ()) -> None:
        self.folder, self.trust = folder, trust
        self.jobs = Jobs(self._score)
        self._busy = threading.Lock()  # one reader needs no two pages at once
        self.check()

    def check(self) -> None:
        """Raises ValueError or OSError where the folder is none of a run."""
        open_run(self.folder, trust=self.trust)

    def get(self, path: str) -> Reply:
        kind, _, rest = path.removeprefix("/").partition("/")
        if kind == "files":
            return file_reply(self.folder, rest)
        if kind == "jobs":
            return as_json(self.jobs.listed())
        if kept := self.kept(path):
            return kept
        with self._busy:
            return self.page(path)

    def kept(self, _path: str) -> Reply | None:
        """What was made before and holds still: nobody waits for it while another page is made."""
        return None

    def post(self, path: str, content: Mapping[str, Any]) -> Reply:
        if path != "/score":
            raise Refused(404, "nothing of that kind can be asked for")
        run, metric = str(content.get("run")), content.get("metric")
        if metric not in ON_DEMAND:
            raise Refused(400, f"metric must be one of {', '.join(ON_DEMAND)}")
        folder = self.run_folder(run)
        if (folder / WEIGHTS).is_file():
            find_codes(folder)  # it may have diverged
        self.jobs.add(run, metric)
        return as_json(self.jobs.listed())

    def page(self, path: str) -> Reply:
        if path != "/":
            raise Refused(404, "no such page")
        return self.run_page(self.folder, home="")

    def run_page(self, folder: Path, *, home: str, compare: Path | None = None) -> Reply:
        return run_reply(folder, home=home, compare=compare, trust=self.trust)

    def run_folder(self, name: str) -> Path:
        if name != self.folder.name:
            raise Refused(404, "no such run")
        return self.folder

    def _score(self, run: str, metric: str) -> str:
        folder = self.run_folder(run)
        with changing(self.folder):
            complete_scores(folder, [metric], retry=True, trust=self.trust)
        scores = read_scores(folder)
        if metric in scores.failed:
            raise ValueError(scores.failed[metric].reason)
        return f"not defined here: {scores.skipped[metric]}" if metric in scores.skipped else ""


class StudySite(RunSite):
    """What the server of a study answers; beside the paths of a run:

    `/` the page of the study; `/data` its numbers, new whenever a run ends; `/picture/ID` and `/run/ID` of a run;
    `/compare/ID/ID` of two.
    """

    def __init__(self, folder: Path, trust: Collection[str] = ()) -> None:
        self._kept: dict[str, tuple[str, Reply]] = {}  # by path, with the tag of what it shows
        super().__init__(folder, trust)

    def check(self) -> None:
        with self._opened():
            pass

    def _opened(self) -> AbstractContextManager[Study]:
        return open_study(self.folder, trust=self.trust)

    def kept(self, path: str) -> Reply | None:
        tag, reply = self._kept.get(path.removeprefix("/"), ("", None))
        return reply if reply and tag == self._tag() else None

    def page(self, path: str) -> Reply:
        kind, _, rest = path.removeprefix("/").partition("/")
        if kind in ("", "data"):
            return self._of_all(kind)
        if kind == "picture":
            folder = self.run_folder(rest)
            return as_json(picture_or_reason(lambda: open_run(folder, device="cpu", trust=self.trust)))
        if kind == "run":
            return self.run_page(self.run_folder(rest), home="../")
        if kind == "compare":
            one, _, other = rest.partition("/")
            return self.run_page(self.run_folder(one), home="../../", compare=self.run_folder(other))
        raise Refused(404, "no such page")

    def run_folder(self, name: str) -> Path:
        """The folder of a run or of an added representation."""
        for place in (RUNS, ADDED):
            with suppress(Refused):
                folder = file_within(self.folder, f"{place}/{name}")
                if "/" not in name and (folder / CONFIG).is_file():
                    return folder
        raise Refused(404, "the study has no finished run of that name")

    def _of_all(self, kind: str) -> Reply:
        """The page of the study, or its data: made again only when the study has changed."""
        live = {"tag": self._tag(), "metrics": ON_DEMAND}
        if kind not in self._kept or self._kept[kind][0] != live["tag"]:
            with self._opened() as study:
                snapshot = study.snapshot()
            about = snapshot, results(snapshot), self.folder
            if kind == "data":
                reply = replace(as_json(study_data(*about, live=live)), headers={"ETag": live["tag"]})
            else:
                reply = html(render("study.html", page_content(*about, live=live)))
            self._kept[kind] = live["tag"], reply
        return self._kept[kind][1]

    def _tag(self) -> str:
        """Another one whenever a run begins, ends or is scored, or the study is ranked or changed."""
        digest = hashlib.sha256()
        for pattern in (YAML, "runs/*", "*/*/scores.json", "failed/*.json", "added/*", "udr/*", "generalisation/*"):
            for path in sorted(self.folder.glob(pattern)):
                if not path.name.startswith("."):
                    digest.update(f"{path} {_stamp(path)}\n".encode())
        return f'"{digest.hexdigest()[:16]}"'


class StudiesSite:
    """What the server of several datasets answers: `/` the page of them all, and `/LABEL/...` what a study's does."""

    def __init__(self, study: Study, trust: Collection[str] = ()) -> None:
        self.study, self.trust = study, trust
        self._sites: dict[str, StudySite] = {}

    def get(self, path: str) -> Reply:
        if path == "/":
            addresses = {label: f"{quote(label)}/" for label in self.study.parts}
            about = self.study.config.name, self.study.text, self.study.require_folder()
            return html(studies_page(*about, self.study.results(), addresses))
        label, site, rest = self._site(path)
        if not rest:  # the addresses on its page are relative
            return Reply(b"", "text/plain", 301, {"Location": f"{quote(label)}/"})
        return site.get(rest)

    def post(self, path: str, content: Mapping[str, Any]) -> Reply:
        _, site, rest = self._site(path)
        return site.post(rest, content)

    def _site(self, path: str) -> tuple[str, StudySite, str]:
        label, slash, rest = path.removeprefix("/").partition("/")
        if label not in self.study.parts:
            raise Refused(404, "no dataset of that name")
        folder = file_within(self.study.require_folder(), label)
        if not (folder / YAML).is_file():
            raise Refused(404, "its runs have not begun")
        if label not in self._sites:
            self._sites[label] = StudySite(folder, self.trust)
        return label, self._sites[label], slash + rest


def open_site(folder: Path, trust: Collection[str] = ()) -> RunSite | StudiesSite:
    """The site of a study's folder, or of a run's.

    Args:
        folder: of the study or the run.
        trust: names of the user's own networks that runs may have; others are not executed.

    Raises:
        FileNotFoundError: there is no such folder, or it is neither.
        ValueError: it is damaged, of another version, or the folder of `unbraid fit`.
    """
    if not folder.is_dir():
        raise FileNotFoundError(f"{folder}: no such folder")
    if (folder / YAML).is_file():
        with open_study(folder, trust=trust) as study:
            return StudySite(folder, trust) if "" in study.parts else StudiesSite(study, trust)
    if (folder / CONFIG).is_file():
        return RunSite(folder, trust)
    check_not_fitted(folder)
    raise FileNotFoundError(
        f"{folder}: neither a study (no {YAML}) nor a run (no {CONFIG}); of a folder of runs, give one"
    )


def run_reply(folder: Path, *, home: str, compare: Path | None = None, trust: Collection[str] = ()) -> Reply:
    """The page of a run, of two beside each other, or of a representation that was added; with scores on demand.

    `home`: from there to the page of the study, "" where there is none.
    """
    served = {"run": folder.name, "metrics": _unscored(folder) if compare is None else [], "home": home}
    if not (folder / WEIGHTS).is_file():
        if not (folder / SCORES).is_file():
            raise Refused(404, f"{folder.name} has neither a model nor scores")
        card = ScoreCard.load(folder / SCORES, read_codes(folder))
        return html(render("explored.html", {**card_content(card.contents()), "base": "page.html", "served": served}))
    other = None if compare is None else open_run(compare, device="cpu", trust=trust)
    content = run_content(open_run(folder, device="cpu", trust=trust), compare=other)
    return html(render("explored.html", {**content, "base": "run.html", "served": served}))


def file_reply(folder: Path, path: str) -> Reply:
    """A file of the folder as text or to be saved, never as a page; or what a folder below it holds."""
    found = file_within(folder, path)
    if found.is_dir():
        if path and not path.endswith("/"):  # its links are relative
            return Reply(b"", "text/plain", 301, {"Location": f"{quote(found.name)}/"})
        return html(_listing(found, path.strip("/")))
    if not found.is_file() or not os.access(found, os.R_OK):  # a pipe would be waited for
        raise Refused(404, "no such file")
    if found.suffix in SHOWN_AS_TEXT:
        return Reply(found, "text/plain; charset=utf-8")
    kept = {"Content-Disposition": f"attachment; filename*=UTF-8''{quote(found.name)}"}
    return Reply(found, "application/octet-stream", headers=kept)


def _unscored(folder: Path) -> list[str]:
    """What can be asked for: nothing of a run without codes."""
    if (folder / WEIGHTS).is_file() and read_folder(folder)[1]["state"] != "finished":
        return []
    return missing_metrics(read_scores(folder), wanted_scores(ON_DEMAND), retry=True)


def _listing(folder: Path, path: str) -> str:
    entries = sorted(each for each in folder.iterdir() if not each.name.startswith("."))
    names = [(f"{each.name}/" if each.is_dir() else each.name, each) for each in entries]
    content = {
        "path": path,
        "home": "../" * len(["files", *filter(None, path.split("/"))]),
        "entries": [(f"./{quote(name)}", name, _size(each)) for name, each in names],
    }
    return render("folder.html", content)


def _size(path: Path) -> str:
    return "" if path.is_dir() or not path.exists() else f"{path.stat().st_size:,} bytes"


def _stamp(path: Path) -> tuple[int, int]:
    try:
        status = path.stat()
    except FileNotFoundError:  # renamed in this moment: the next look sees it
        return 0, 0
    return status.st_mtime_ns, status.st_size
