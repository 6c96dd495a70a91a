"""Very many runs, very many samples, very many cards: time, memory and open files.

python evidence/benchmarks/load.py [--runs 5000] [--samples 1000000] [--cards 10000] [--trainings 200]

Seconds are of processor time, of this process and those it waited for. A part whose number is 0 is left out.
"""

import argparse
import json
import os
import resource
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from unittest.mock import patch

for variable in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS", "NUMBA_NUM_THREADS"):
    os.environ[variable] = "1"

import numpy as np

YAML = """
name: load
dataset: {{name: square, positions: 4, shrink: 8}}
families: [{{name: beta_vae, beta: [1, 2, 4, 8], network: dense, latents: 2}}]
seeds: {seeds}
steps: 1
batch_size: 4
precision: float32
device: cpu
metrics: [mig]
"""
MADE = 100  # runs that are trained; the others are copies under the ids that the study expects


def seconds() -> float:
    own, children = (resource.getrusage(who) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN))
    return own.ru_utime + own.ru_stime + children.ru_utime + children.ru_stime


def memory() -> float:
    """Megabytes that this process has now."""
    with Path("/proc/self/statm").open() as file:
        return int(file.read().split()[1]) * resource.getpagesize() / 1e6


def peak() -> float:
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1e3


def apart(what: str, work: Callable[[], object]) -> None:
    """Do it in a process of its own, forked, and tell its time and what memory it needed beyond what it began with."""
    sys.stdout.flush()
    if (child := os.fork()) == 0:
        begun, before = seconds(), memory()
        told = work()
        extra = f", {told}" if isinstance(told, str) else ""
        print(
            f"{what}: {seconds() - begun:.2f} s, peak {peak():.0f} MB ({peak() - before:.0f} more than before){extra}"
        )
        sys.stdout.flush()
        os._exit(0)
    os.waitpid(child, 0)


def many_runs(count: int, home: Path) -> None:
    from unbraid import Study
    from unbraid.files.checksum import checksummed_json, without_checksum
    from unbraid.runs.folder import run_id
    from unbraid.training.loop import _Stretch

    yaml = home / "study.yaml"
    yaml.write_text(YAML.format(seeds=MADE // 4))
    warm = home / "warm.yaml"  # what is imported and compiled once is no cost of a run
    warm.write_text(YAML.format(seeds=1))
    Study.load(warm, out=home / "warm").run(processes=0)
    trained = 0.0

    def training(self: _Stretch, asked: Sequence[int]) -> None:
        nonlocal trained
        before = seconds()
        steps(self, asked)
        trained += seconds() - before

    steps = _Stretch.run
    with patch.object(_Stretch, "run", training):
        begun, started = seconds(), time.perf_counter()
        made = Study.load(yaml, out=home / "study").run(processes=0)
        spent, passed = seconds() - begun, time.perf_counter() - started
    print(f"{len(made)} runs of one step: {1000 * spent / len(made):.0f} ms a run ({passed:.1f} s on the clock)")
    print(f"  of which training itself {1000 * trained / len(made):.0f} ms")
    yaml.write_text(YAML.format(seeds=count // 4))
    study = Study.load(yaml, out=home / "study")
    first = made[0].path
    for planned in study.part().planned():
        assert run_id(planned.config) == planned.id
        target = home / "study" / "runs" / planned.id
        if not target.exists():
            shutil.copytree(first, target, copy_function=os.link)
            config = json.loads((first / "config.json").read_text())
            config |= {"seed": planned.seed, "hyperparameters": dict(planned.config["hyperparameters"])}
            (target / "config.json").unlink()
            (target / "config.json").write_bytes(checksummed_json(without_checksum(config)))
    (home / "study" / "study.yaml").write_text(yaml.read_text())

    def status() -> None:
        assert sum(run.state == "finished" for run in Study.load(home / "study").runs()) == count

    def page() -> str:
        from unbraid.studies.study_page import study_page

        study = Study.load(home / "study")
        text = study_page(study, study.results(), base=home)
        (home / "page.html").write_text(text, encoding="utf-8")
        return f"{(home / 'page.html').stat().st_size / 1e6:.1f} MB"

    for which in ("all of them read", "again"):
        asked = seconds()
        words = ["-c", "from unbraid.cli import main; main()", "study", "status", str(home / "study")]
        subprocess.run([sys.executable, *words], check=True, stdout=subprocess.DEVNULL)
        print(f"unbraid study status of {count} runs, its start included, {which}: {seconds() - asked:.2f} s")
    apart(f"state of {count} runs", status)
    apart(f"table of {count} runs", lambda: Study.load(home / "study").results())
    apart(f"page of {count} runs", page)


def many_samples(count: int, home: Path) -> None:
    from unbraid import Representation, score

    rng = np.random.default_rng(0)
    path = home / "codes.safetensors"
    factors = np.stack([rng.integers(0, size, count) for size in (3, 6, 40)], axis=1)
    Representation(rng.standard_normal((count, 64)).astype(np.float32), factors).save(path)
    print(f"{count} samples of 64 codes: a file of {path.stat().st_size / 1e6:.0f} MB")
    apart("  read", lambda: Representation.load(path).codes.sum())
    for metric in ("mig", "modularity", "sap", "snc", "irs", "dci_lasso"):
        apart(f"  {metric}", lambda metric=metric: score(Representation.load(path), metrics=[metric]))


def steady(what: str, count: int, work: Callable[[int], object]) -> None:
    """Do it again and again; memory and open files of the middle and the end."""
    begun, told = seconds(), []
    for number in range(count):
        work(number)
        if number in (count // 10, count // 2, count - 1):
            told.append(f"{memory():.0f} MB, {len(os.listdir('/proc/self/fd'))} files")
    print(f"{count} {what}: {1000 * (seconds() - begun) / count:.1f} ms each; at a tenth, half, end: {'; '.join(told)}")


def many_cards(count: int) -> None:
    from unbraid import Representation, score

    rng = np.random.default_rng(0)
    held = Representation(rng.standard_normal((100, 3)), rng.integers(0, 3, (100, 2)))
    steady("cards of mig and sap", count, lambda _: score(held, metrics=["mig", "sap"]).to_dict())


def many_trainings(count: int, home: Path) -> None:
    from unbraid import train
    from unbraid.datasets import load

    images = load("square", positions=4, shrink=8)
    settings = {"steps": 2, "batch_size": 4, "network": "dense", "latents": 2, "processes": 0, "precision": "float32"}
    steady("trainings", count, lambda number: train("vae", images, seeds=[number], out=home / "runs", **settings))


def main() -> None:
    words = argparse.ArgumentParser()
    for name, default in (("runs", 5000), ("samples", 1_000_000), ("cards", 10_000), ("trainings", 200)):
        words.add_argument(f"--{name}", type=int, default=default)
    chosen = words.parse_args()
    with tempfile.TemporaryDirectory() as home:
        if chosen.runs:
            many_runs(chosen.runs, Path(home))
        if chosen.samples:
            many_samples(chosen.samples, Path(home))
        if chosen.cards:
            many_cards(chosen.cards)
        if chosen.trainings:
            many_trainings(chosen.trainings, Path(home))


if __name__ == "__main__":
    main()
