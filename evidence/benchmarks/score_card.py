"""The whole score card: seconds, peak memory, and growth with the number of samples.

    python evidence/benchmarks/score_card.py                 the shipped example, each metric and the sum
    python evidence/benchmarks/score_card.py --cores         the same on one core and on all, beside matrix products on one core
    python evidence/benchmarks/score_card.py --first         the first card of a process beside the second
    python evidence/benchmarks/score_card.py --sure          --confidence .95 --null 100 of the standard card beside a plain one
    python evidence/benchmarks/score_card.py --large         peak memory at 100 000 samples of 64 codes
    python evidence/benchmarks/score_card.py --growth        seconds at 1e4, 1e5 and 1e6 samples, metrics that claim to be linear
    python evidence/benchmarks/score_card.py --growth mig    the same for some metrics (trained ones take minutes at 1e6)

One thread is used, but for --cores and the commands of --sure. The first call compiles the kernels, or loads those
kept, and is not counted.
"""

import argparse
import os
import resource
import subprocess
import time
from collections.abc import Callable

for variable in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"):
    os.environ[variable] = "1"

import numpy as np

from unbraid import Representation, score
from unbraid.metrics import METRICS
from unbraid.scoring.card import ScoreCard

SIZES = (3, 6, 40, 32, 32)
LATER = ("dci_es", "infomec", "factorised_support", "latent_matching", "omes")  # than the 20 metrics of the goal


def synthetic(n_samples: int, n_codes: int) -> Representation:
    """Factors drawn uniformly; each seen, with noise, in two codes; the other codes are noise."""
    rng = np.random.default_rng(0)
    factors = np.stack([rng.integers(0, size, n_samples) for size in SIZES], axis=1)
    codes = rng.standard_normal((n_samples, n_codes))
    centred = (factors - factors.mean(axis=0)) / factors.std(axis=0)
    codes[:, : len(SIZES)] = 0.2 * codes[:, : len(SIZES)] + centred
    log_variances = np.full_like(codes, -3.0)
    kinds = ("categorical", "ordinal", "cyclic", "ordinal", "ordinal")
    return Representation(codes, factors, log_variances=log_variances, kinds=kinds, sizes=SIZES)


def timed(representation: Representation, metrics: list[str] | str = "all") -> tuple[float, ScoreCard]:
    started = time.perf_counter()
    card = score(representation, metrics=metrics)
    return time.perf_counter() - started, card


def example() -> None:
    timed(Representation.example())
    seconds, card = timed(Representation.example())
    for name, scored in sorted(card.scored.items(), key=lambda item: -item[1].seconds):
        print(f"{name:<22}{scored.seconds:8.3f} s   {scored.metric.headline} {scored.headline:.3f}")
    print(f"{'whole card':<22}{seconds:8.3f} s   10 000 x 10, factors of {SIZES} levels")
    print(f"skipped: {', '.join(card.skipped)}")


def first() -> None:
    """Run it twice: kernels that were compiled before are kept in the user's cache."""
    given = Representation.example()
    seconds = [timed(given)[0] for _ in range(3)]
    print(f"the first card {seconds[0]:.2f} s, the next {seconds[1]:.2f} and {seconds[2]:.2f} s")


def cores() -> None:
    """The card on one core and on all that there are, in turn, each the fastest of three, metric by metric."""
    given, all_cores = Representation.example(), os.sched_getaffinity(0)
    timed(given)
    one = {min(all_cores)}
    rounds: dict[bool, list[dict[str, float]]] = {True: [], False: []}
    for _ in range(3):
        for alone, found in rounds.items():
            os.sched_setaffinity(0, one if alone else all_cores)
            seconds, card = timed(given)
            found.append({name: each.seconds for name, each in card.scored.items()} | {"whole card": seconds})
    os.sched_setaffinity(0, one)
    fastest = {alone: {name: min(each[name] for each in found) for name in found[0]} for alone, found in rounds.items()}
    print(f"{'':<22}{'1 core':>9}{f'{len(all_cores)} cores':>9}  ratio")
    for name, alone in sorted(fastest[True].items(), key=lambda item: -item[1]):
        if alone > 0.05:
            print(f"{name:<22}{alone:8.2f}s{fastest[False][name]:8.2f}s  {fastest[False][name] / alone:.2f}")
    earlier = [sum(s for name, s in each.items() if name not in (*LATER, "whole card")) for each in fastest.values()]
    print(f"{'without the later five':<22}{earlier[0]:8.2f}s{earlier[1]:8.2f}s  {earlier[1] / earlier[0]:.2f}")
    products = of_products()
    print(f"4.6e11 operations of single-precision matrix products take {products:.2f} s on one core, the card without")
    print(f"{', '.join(LATER)} takes {earlier[0] / products:.2f} times as long")


def sure() -> None:
    """Intervals and 100 permutations beside a plain card: as commands, on all cores, and within a process."""
    asked = ["--confidence", ".95", "--null", "100"]
    seconds: dict[str, list[tuple[float, float]]] = {"plain": [], "sure": []}
    for what, arguments in (("plain", []), ("plain", []), ("sure", asked), ("plain", [])):
        before, started = resource.getrusage(resource.RUSAGE_CHILDREN), time.perf_counter()
        subprocess.run(["unbraid", "score", "--example", *arguments], check=True, capture_output=True)
        clock, after = time.perf_counter() - started, resource.getrusage(resource.RUSAGE_CHILDREN)
        seconds[what].append((after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime, clock))
    plain, plain_clock = np.min(seconds["plain"], axis=0)
    ((all_of_it, clock),) = seconds["sure"]
    print(f"as commands: {plain:.1f} s of the processor, {plain_clock:.1f} s by the clock; with intervals and 100")
    print(f"permutations {all_of_it:.1f} and {clock:.1f}, {all_of_it / plain:.1f} and {clock / plain_clock:.1f} times")
    given = Representation.example()
    ways: dict[str, Callable[[], object]] = {
        "plain": lambda: score(given, metrics="standard"),
        "intervals": lambda: score(given, metrics="standard", confidence=0.95),
        "permutations": lambda: score(given, metrics="standard", null=100),
    }
    ways["plain"]()
    found: dict[str, float] = {}
    for what, way in ways.items():
        started = time.process_time()
        way()
        found[what] = time.process_time() - started - found.get("plain", 0.0)
    plain, intervals, permutations = found.values()
    print(f"within a process: plain {plain:.1f} s of the processor, intervals {intervals:.1f} s more, permutations")
    print(f"{permutations:.1f} s; {(plain + intervals + permutations) / plain:.1f} times the plain card")


def of_products() -> float:
    """Seconds of 4.6e11 floating-point operations of matrix products, by those of a tenth of them, the fastest of 3."""
    size = 1024
    one, other, product = np.random.default_rng(0).standard_normal((3, size, size)).astype(np.float32)
    count, found = round(4.6e10 / (2 * size**3)), []
    for _ in range(3):
        started = time.perf_counter()
        for _ in range(count):
            np.matmul(one, other, out=product)
        found.append(time.perf_counter() - started)
    return 10 * min(found) * 4.6e10 / (2 * size**3 * count)


def large() -> None:
    representation = synthetic(100_000, 64)
    before = peak_mb()
    seconds, card = timed(representation)
    print(f"{len(card.scored)} metrics at 100 000 x 64: {seconds:.0f} s")
    print(f"peak memory {peak_mb():.0f} MB, of which {before:.0f} MB were there before scoring")


def growth(chosen: list[str]) -> None:
    names = chosen or [name for name, metric in METRICS.items() if metric.linear]
    timed(synthetic(10_000, 10))
    seconds: dict[str, list[float]] = {name: [] for name in names}
    for n_samples in (10_000, 100_000, 1_000_000):
        _, card = timed(synthetic(n_samples, 10), names)
        for name, scored in card.scored.items():
            seconds[name].append(scored.seconds)
    print(f"{'seconds at':<22}{'1e4':>10}{'1e5':>10}{'1e6':>10}   growth from 1e5 to 1e6")
    for name, times in seconds.items():
        if len(times) == 3:
            print(f"{name:<22}" + "".join(f"{t:10.3f}" for t in times) + f"   x {times[2] / max(times[1], 1e-4):.1f}")


def peak_mb() -> float:
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--first", action="store_true")
    parser.add_argument("--cores", action="store_true")
    parser.add_argument("--sure", action="store_true")
    parser.add_argument("--large", action="store_true")
    parser.add_argument("--growth", nargs="*", metavar="METRIC")
    chosen = parser.parse_args()
    if chosen.growth is not None:
        growth(chosen.growth)
    elif chosen.first:
        first()
    elif chosen.cores:
        cores()
    elif chosen.sure:
        sure()
    else:
        (large if chosen.large else example)()
