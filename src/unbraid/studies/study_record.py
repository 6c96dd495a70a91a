"""A study of one dataset: its YAML, its folder, and the folder's content."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import torch

from unbraid.base.device import check_unnumbered, choose_device, choose_precision
from unbraid.base.types import Progress
from unbraid.data.image_dataset import FactorDataset
from unbraid.datasets.recorded import check_recorded
from unbraid.files.marks import ReadOnce
from unbraid.files.run_files import SCORES
from unbraid.files.score_file import Decision, SavedScores
from unbraid.files.trust import Trusted, UntrustedCode, UntrustedData, trusted_in
from unbraid.studies import store
from unbraid.studies.expand import expand, metric_names
from unbraid.studies.holdout.answers import ANSWERS, read_answers
from unbraid.studies.run_scores import score_requirements
from unbraid.studies.schema import StudyConfig
from unbraid.studies.snapshot import StudySnapshot, read_added, read_run, read_scores, run_marks
from unbraid.studies.store import StudyEnvironment
from unbraid.training.source import open_dataset, opened_dataset
from unbraid.training.train import readable_logs

if TYPE_CHECKING:
    from unbraid.base.progress_bar import ProgressBar

DEVICES = ("auto", "cpu", "cuda", "mps")


@dataclass(frozen=True)
class StudyProgress:
    """How far a study is."""

    n_runs: int
    n_done: int  # finished, diverged or failed, in this session or before
    n_failed: int
    steps: int  # of all runs
    done_steps: int  # of those that are done
    steps_taken: Mapping[str, int] = field(default_factory=dict)  # steps by run, of those at work
    logs: Mapping[str, float] = field(default_factory=dict)  # latest means of the run that reported last
    doing: Mapping[str, str] = field(default_factory=dict)  # by run, of those that are trained: "scoring mig"
    # What follows once all runs are done: ("comparing models", 3, 42). Before them: ("reading images", 4096, 737280).
    after: tuple[str, int, int] | None = None
    label: str = ""  # of the dataset, in a study of several

    def show_on(self, bar: "ProgressBar") -> None:
        if self.after is not None:
            what, done, total = self.after
            bar.show(f"{self.label} {what}".strip(), done, total, f"{done:,}/{total:,}")
            return
        failed = f" ({self.n_failed} failed)" if self.n_failed else ""
        done, total, detail, before = bar.pace.report(
            self.done_steps,
            self.steps,
            self.steps_taken,
            readable_logs(self.logs),
            sorted(set(self.doing.values())),
        )
        title = " ".join(filter(None, (bar.title, self.label)))
        bar.show(f"{title} {self.n_done}/{self.n_runs} runs{failed}", done, total, detail, before)


class InFolder:
    """A study that may have a folder."""

    folder: Path | None

    def require_folder(self) -> Path:
        """The folder.

        Raises:
            ValueError: none was given.
        """
        if self.folder is None:
            made = "give the folder that unbraid study run --out made, or Study.load(yaml, out=folder)"
            raise ValueError(f"the study has no folder yet; {made}")
        return self.folder


@dataclass(frozen=True)
class StudyPart(InFolder):
    """The part of a study for one dataset: an ordinary study in its own folder, which can be opened alone."""

    config: StudyConfig
    folder: Path | None
    text: str  # the YAML
    label: str = ""  # in a study of several datasets
    files: ReadOnce = field(default_factory=ReadOnce, repr=False, compare=False)  # study.json alone

    @property
    def trusted(self) -> list[Trusted]:
        """Its own networks, metrics and images that the user trusts."""
        return trusted_in([*self.config.own_code, self.config.dataset.name])

    def check_trust(self) -> None:
        """Raises UntrustedCode where running the study would execute code that the user did not name."""
        names = list(dict.fromkeys(name for name in self.config.own_code if not isinstance(name, Trusted)))
        if names:
            where = self.folder / store.YAML if self.folder else "the study"
            raise UntrustedCode(
                f"{where} names code of its own, {' and '.join(map(repr, names))}, and this would execute it",
                names,
                f"Study.load(..., trust={names!r})",
            )

    def check_folder(self) -> None:
        """Raises ValueError if the folder cannot hold the study: it holds something else, or another format."""
        if self.folder is not None:
            store.check_folder(self.folder, self.files)

    def environment(self) -> StudyEnvironment:
        """The dataset, device and precision of the runs: those the folder began with, else those met here.

        Raises:
            ValueError, OSError: as `resolve_environment`, where the folder does not say what the runs were trained on.
        """
        known = store.read_environment(self.folder, self.source, self.files) if self.folder else None
        try:
            return known or self.resolve_environment()[1]
        except UntrustedData as error:
            again = f"unbraid study run STUDY.yaml --out {self.folder}, with a YAML of your own, does"
            raise ValueError(f"{error.reason}; {again}") from None

    @property
    def source(self) -> dict[str, Any]:
        """The dataset as the YAML describes it."""
        return {"name": self.config.dataset.name, **self.config.dataset.options}

    def dataset(self) -> FactorDataset:
        """The dataset, opened.

        Raises:
            ValueError, OSError: there is no such dataset, it cannot be opened, or the user did not give its path.
        """
        self._check_path()
        return open_dataset(self.source)

    def resolve_environment(self, progress: Progress | None = None) -> tuple[FactorDataset, StudyEnvironment]:
        """Open the dataset, and settle device and precision of the runs.

        Args:
            progress: called as progress("reading images", done, all) where that takes long.

        Raises:
            ValueError, OSError: there is no such dataset, it cannot be opened, or the user did not give its path.
        """
        self._check_path()
        read = partial(progress, "reading images") if progress else None
        dataset, described = opened_dataset(self.source, read)
        known = store.read_environment(self.folder, self.source, self.files) if self.folder else None
        device, precision = self.config.device, self.config.precision
        check_unnumbered(device)
        if device not in DEVICES:  # the executor checks whether it is available: Ray may have it on another machine
            raise ValueError(f"device {device!r}: one of {', '.join(DEVICES)}")
        if device == "auto":
            device = known.device if known else choose_device("auto").type
        if precision == "auto":
            same_device = known is not None and known.device == device
            precision = known.precision if known and same_device else choose_precision("auto", torch.device(device))
        begun = (known.training, known.code) if known else ({}, {})
        return dataset, StudyEnvironment(described, device, precision, *begun)

    def _check_path(self) -> None:
        name, where = self.config.dataset.name, (self.folder or Path()) / store.YAML
        check_recorded(name, where, f"Study.load(..., trust=[{name!r}])")

    def snapshot(self, *, around: StudyEnvironment | None = None, files: ReadOnce | None = None) -> StudySnapshot:
        """What the folder of the study holds now, each file read once.

        Args:
            around: what its runs are trained on, where that is known already.
            files: what was read already; of it only what changed is read again.

        Raises:
            ValueError: the study has no folder, or files are damaged.
        """
        folder, requirements = self.require_folder(), self.score_requirements()
        around, files = around or self.environment(), ReadOnce() if files is None else files
        marks = run_marks(folder)  # before the runs are read: what is written meanwhile is read again
        runs = [read_run(folder, planned, requirements, files) for planned in expand(self.config, around)]
        runs += read_added(folder, requirements, files, runs)
        return StudySnapshot(
            self.label, self.config, self.text, folder, self.trusted, around, requirements, runs, marks,
            self._baselines(files), self._answers(files), files,
        )  # fmt: skip

    def _baselines(self, files: ReadOnce) -> dict[str, SavedScores]:
        folder = self.require_folder() / store.BASELINES
        names = sorted(path.parent.name for path in folder.glob(f"[!.]*/{SCORES}")) if self.config.baselines else ()
        return {name: files(read_scores, folder / name, SCORES) for name in names}

    def _answers(self, files: ReadOnce) -> dict[str, dict[str, Any]]:
        asks = self.config.compositional or self.config.zero_shot
        paths = sorted((self.require_folder() / store.RUNS).glob(f"*/{ANSWERS}")) if asks else ()
        return {path.parent.name: files(read_answers, path.parent, ANSWERS) for path in paths}

    def score_requirements(self) -> dict[str, Decision]:
        """By metric, what the scores of a run must have been computed with; no code of the user is imported."""
        return score_requirements(metric_names(self.config), held_out=self.config.held_out)
