"""Run the papers' studies in slices, those of the most claims an hour first: make published MINUTES=25.

A slice goes on where the last one stopped. A run that has ended is gathered into docs/reproductions/results, and its folder is
deleted, so that what one machine has to hand to the next stays small: the tables, and the checkpoints of runs at work.
"""

import argparse
import shutil
import signal
import subprocess
import sys
import tempfile
from itertools import product
from pathlib import Path
from time import monotonic
from typing import Any

import pandas as pd
import yaml
from claims_rules import ROOT
from make_claims import RESULTS, Key, ended, gathered, with_earlier

from unbraid import Study

STUDIES = (
    "dci-2018-16px",
    "dci-2018-zero-shot-16px",
    "lsbd/square-64px",
    "beta-tcvae-2018-32px",
    "snc-nk-2023-rooms-32px",
    "lsbd/arrow-64px",
    "lsbd/square",
    "dci-2018",
    "beta-tcvae-2018",
    "snc-nk-2023-shapes3d",
    "udr-2020",
)
LEAST_SECONDS = 60  # of a slice that are worth starting a study for
STOPPED = 130  # exit code after Ctrl-C
GRACE_SECONDS = 120  # for runs to save their checkpoints


def unfinished(content: dict[str, Any], done: set[Key]) -> dict[str, Any]:
    """The study without the runs that have ended: an entry for each setting of its families, with the seeds that are left."""
    entries = []
    for section in content["families"]:
        grid = {name: value for name, value in section.items() if isinstance(value, list) and name != "seeds"}
        for values in product(*grid.values()):
            entry = section | dict(zip(grid, values, strict=True))
            seeds = section.get("seeds", content["seeds"])
            if left := [seed for seed in seeds if not planned_runs(content, entry, seed) <= done]:
                entries.append(entry | {"seeds": left})
    return content | {"families": entries}


def planned_runs(content: dict[str, Any], section: dict[str, Any], seed: int) -> set[Key]:
    """Family, setting and seed of the runs of one entry and seed."""
    with tempfile.TemporaryDirectory() as folder:
        file = write(content | {"families": [section | {"seeds": [seed]}]}, Path(folder) / "study.yaml")
        runs = Study.load(file, out=Path(folder) / "study").runs()
        return {(run.family, run.setting, run.seed) for run in runs}


def write(content: dict[str, Any], file: Path) -> Path:
    """The file, with the study in it."""
    file.write_text(yaml.safe_dump(content, sort_keys=False, allow_unicode=True), encoding="utf-8")
    return file


def run_slice(file: Path, folder: Path, seconds: float) -> None:
    """Train and score for so long at the most, and save the checkpoints; on Ctrl-C, too."""
    command = [sys.executable, "-m", "unbraid", "study", "run", str(file), "--out", str(folder)]
    # In a session of its own, as a second Ctrl-C would end it before it has saved.
    with subprocess.Popen(command, start_new_session=True) as process:
        try:
            process.wait(seconds)
        except (subprocess.TimeoutExpired, KeyboardInterrupt) as stop:
            process.send_signal(signal.SIGINT)
            process.wait(GRACE_SECONDS)
            if isinstance(stop, KeyboardInterrupt):
                raise SystemExit(STOPPED) from None


def hand_over(folder: Path) -> None:
    """Gather what has ended, and delete its folders."""
    study = Study.load(folder)
    table = with_earlier(gathered(folder), RESULTS / f"{study.config.name}.csv")
    table.to_csv(RESULTS / f"{study.config.name}.csv", index=False)
    done = ended(table)
    for run in study.runs():
        if (run.family, run.setting, run.seed) in done:
            shutil.rmtree(folder / "runs" / run.id, ignore_errors=True)


def main() -> None:
    """Run one slice."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("studies", nargs="*", default=STUDIES, help="files of evidence/studies without .yaml")
    parser.add_argument("--minutes", type=float, default=25)
    parser.add_argument("--out", type=Path, default=ROOT / "reproduced", help="folder of the studies")
    options = parser.parse_args()
    end = monotonic() + 60 * options.minutes
    for name in options.studies:
        if end - monotonic() < LEAST_SECONDS:
            return
        content = yaml.safe_load((ROOT / "evidence" / "studies" / f"{name}.yaml").read_text(encoding="utf-8"))
        table = RESULTS / f"{content['name']}.csv"
        content = unfinished(content, ended(pd.read_csv(table)) if table.is_file() else set())
        if not content["families"]:
            print(f"{name}: all runs have ended", flush=True)
            continue
        folder = options.out / content["name"]
        folder.mkdir(parents=True, exist_ok=True)
        print(f"{name}: for {(end - monotonic()) / 60:.0f} minutes", flush=True)
        run_slice(write(content, options.out / f"{content['name']}.yaml"), folder, end - monotonic())
        hand_over(folder)


if __name__ == "__main__":
    main()
