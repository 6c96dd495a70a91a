"""Peak memory of `score`, `compare` and `rank`, each in a process of its own, beside what is estimated before work.

    python evidence/benchmarks/memory.py                     all cases
    python evidence/benchmarks/memory.py score sae           those whose name begins with these words

A case runs on a small input first, so that libraries and compiled kernels are in memory already. What it needs is its
peak (`ru_maxrss`) less what the process held when the call began, with its input; the estimate is what the library
asks to be free at that moment.
"""

import os
import resource
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
from scipy import sparse

import unbraid
import unbraid.base.memory
from unbraid import Representation

Case = Callable[[int, int], Callable[[], Any]]


def dense(rows: int, codes: int, seed: int = 0) -> Any:
    """Float32, as networks give them; each tells of a factor."""
    noise = np.random.default_rng(seed).standard_normal((rows, codes), dtype=np.float32)
    noise += np.resize(factors(rows).T, (codes, rows)).T
    return noise


def few(rows: int, codes: int, seed: int = 0) -> Any:
    """1 % of the values are not 0."""
    rng, per_code = np.random.default_rng(seed), max(rows // 100, 2)
    cells = rng.integers(0, rows, codes * per_code), np.repeat(np.arange(codes), per_code)
    return sparse.coo_array((rng.random(len(cells[0]), dtype=np.float32), cells), shape=(rows, codes)).tocsr()


def factors(rows: int) -> Any:
    """Ten of four levels."""
    return np.random.default_rng(1).integers(0, 4, (rows, 10))


def scored(made: Callable[..., Any], metrics: Any) -> Case:
    def case(rows: int, codes: int) -> Callable[[], Any]:
        held, labels = made(rows, codes), factors(rows)
        return lambda: unbraid.score(held, labels, metrics=metrics)

    return case


def compared(n_models: int, metrics: Any, share: float = 1.0) -> Case:
    """`share`: rows of the second model over those of the first."""

    def case(rows: int, codes: int) -> Callable[[], Any]:
        sizes = [rows if place != 1 else round(share * rows) for place in range(n_models)]
        models = {
            f"model {place}": Representation.of(dense(size, codes, place), factors(size))
            for place, size in enumerate(sizes)
        }
        return lambda: unbraid.compare(models, metrics=metrics, confidence=(0.95, 4))

    return case


def ranked(made: Callable[..., Any], n_models: int, **options: Any) -> Case:
    def case(rows: int, codes: int) -> Callable[[], Any]:
        models = [made(rows, codes, place) for place in range(n_models)]
        return lambda: unbraid.rank(models, **options)

    return case


CASES: dict[str, tuple[Case, list[tuple[int, int]]]] = {
    "score sae": (scored(dense, "sae"), [(20_000, 512), (5_000, 2_048), (20_000, 1_024)]),
    "score of all": (
        scored(dense, ["r2", "irs", "linear_accuracy", "amari", "explicitness"]),
        [(20_000, 64), (10_000, 200)],
    ),
    "score standard": (scored(dense, "standard"), [(20_000, 20)]),
    "score sparse": (scored(few, "sae"), [(20_000, 4_096), (200_000, 1_024)]),
    "compare 2 sae": (compared(2, "sae"), [(50_000, 50)]),
    "compare 6 sae": (compared(6, "sae"), [(50_000, 50)]),
    "compare unequal sae": (compared(2, "sae", 0.25), [(50_000, 50)]),
    "rank lasso 2": (ranked(dense, 2), [(20_000, 128)]),
    "rank lasso 40": (ranked(dense, 40), [(50_000, 10)]),
    "rank lasso 400": (ranked(dense, 400), [(20_000, 10)]),
    "rank spearman 2": (ranked(dense, 2, similarity="spearman"), [(20_000, 128)]),
    "rank spearman 40": (ranked(dense, 40, similarity="spearman"), [(50_000, 10)]),
    "rank top pearson": (ranked(dense, 3, similarity="pearson", top=10), [(20_000, 1_024)]),
    "rank top spearman": (ranked(dense, 3, top=10), [(20_000, 1_024)]),
    "rank top sparse": (ranked(few, 3, top=10), [(20_000, 4_096), (200_000, 1_024)]),
}


def main() -> None:
    """One line for each case and size."""
    wanted = " ".join(sys.argv[1:])
    for name, (_, sizes) in CASES.items():
        for rows, codes in sizes if name.startswith(wanted) else ():
            command = [sys.executable, __file__, "--one", name, str(rows), str(codes)]
            os.waitpid(os.posix_spawn(sys.executable, command, os.environ), 0)


def one(name: str, rows: int, codes: int) -> None:
    """Print what this case needed."""
    asked: list[float] = []

    def noted(needed: float, *_: Any) -> None:
        asked.append(needed * unbraid.base.memory.MARGIN)

    made, _ = CASES[name]
    made(400, 6)()
    for module in list(sys.modules.values()):
        if module.__name__.startswith("unbraid.") and hasattr(module, "check_memory"):
            module.check_memory = noted
    call = made(rows, codes)
    held = int(Path("/proc/self/statm").read_text().split()[1]) * resource.getpagesize()
    call()
    peak = 1024 * resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    numbers = 8 * rows * codes
    print(
        f"{name}, {rows} x {codes}: needed {(peak - held) / 1e6:.0f} MB, {(peak - held) / numbers:.2f} x one matrix of "
        f"doubles; asked for {max(asked, default=0) / 1e6:.0f} MB",
        flush=True,
    )


if __name__ == "__main__":
    if sys.argv[1:2] == ["--one"]:
        one(sys.argv[2], int(sys.argv[3]), int(sys.argv[4]))
    else:
        main()
