"""What p-values and intervals promise where rows hang together: time series, and groups such as trials or animals.

    python evidence/benchmarks/hanging_rows.py walks         p of unrelated random walks, by null=100 and null="shift"
    python evidence/benchmarks/hanging_rows.py groups        p of groups with effects of their own, unrelated and related
    python evidence/benchmarks/hanging_rows.py intervals     coverage of 95 % intervals on 30 groups of 50 rows
    python evidence/benchmarks/hanging_rows.py compare       how often one of two equal models of 10 and 40 groups is better
    python evidence/benchmarks/hanging_rows.py note          how often the note on neighbouring rows is there

Each takes some minutes on one core; --samples 20 for a look, --metrics snc,modularity for others than these.
"""

import argparse
import os
from collections import Counter
from collections.abc import Callable

for variable in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS", "NUMBA_NUM_THREADS"):
    os.environ[variable] = "1"

import numpy as np

from unbraid import Representation, compare, score
from unbraid.scoring.dependence import note_on_neighbours
from unbraid.scoring.interval import Interval

AT_ONCE = ["mig", "sap", "snc", "dci_lasso", "mcc"]
P, CONFIDENCE = 0.05, 0.95


def walk(rng: np.random.Generator, step: float, n_samples: int = 2000) -> Representation:
    """Ten random walks as codes beside the angle of an eleventh, whose steps have this deviation."""
    codes = np.cumsum(rng.standard_normal((n_samples, 10)), axis=0)
    angle = np.mod(np.cumsum(step * rng.standard_normal(n_samples)), 2 * np.pi)
    return Representation(codes, angle[:, None], names=("angle",), kinds=("cyclic",))


def even(_: np.random.Generator, n_groups: int) -> np.ndarray:
    return np.full(n_groups, 50)


def uneven(rng: np.random.Generator, n_groups: int) -> np.ndarray:
    return rng.integers(10, 91, n_groups)


def grouped(
    rng: np.random.Generator,
    related: float,
    n_groups: int = 30,
    rows: Callable[[np.random.Generator, int], np.ndarray] = even,
    within: float = 1.0,
) -> Representation:
    """Two factors of five levels, each of an effect of its group and one of its row, and four codes likewise.

    The first codes are the factors' values times `related`, beside an effect of the group and one of the row of their
    own; `within` is the deviation of the factors from row to row, of 1 from group to group.
    """
    groups = np.repeat(np.arange(n_groups), rows(rng, n_groups))
    values = rng.standard_normal((n_groups, 2))[groups] + within * rng.standard_normal((len(groups), 2))
    factors = np.clip(np.rint(values + 2), 0, 4)
    codes = rng.standard_normal((n_groups, 4))[groups] + rng.standard_normal((len(groups), 4))
    codes[:, :2] += related * (factors - 2)
    return Representation(codes, factors, kinds=("ordinal",) * 2, groups=groups)


def false_alarms(
    title: str, draw: Callable[[np.random.Generator], Representation], null: int | str, metrics: list[str], n: int
) -> None:
    """How many of `n` samples have p of .05 or less."""
    low: Counter[str] = Counter()
    for sample in range(n):
        card = score(draw(np.random.default_rng(sample)), metrics=metrics, null=null)
        for name, each in card.scored.items():
            low[name] += each.null is not None and each.null.p <= P
    print(f"{title:<52}" + "".join(f"{low[name]:>11}" for name in metrics), flush=True)


def walks(n: int, metrics: list[str]) -> None:
    print(f"{f'p <= .05 of {n} pairs of unrelated walks':<52}" + "".join(f"{name:>11}" for name in metrics))
    for step in (0.1, 0.3, 1.0):
        for null in ("shift",) if step != 0.1 else (100, "shift"):
            false_alarms(f"steps of {step:g}, null={null!r}", lambda rng, s=step: walk(rng, s), null, metrics, n)


def groups(n: int, metrics: list[str]) -> None:
    print(f"{f'p <= .05 of {n} samples':<52}" + "".join(f"{name:>11}" for name in metrics))
    for title, related, n_groups, rows, within in (
        ("30 groups of 50 rows, unrelated", 0.0, 30, even, 1.0),
        ("30 groups of 10 to 90 rows, unrelated", 0.0, 30, uneven, 1.0),
        ("30 groups of 10 to 90 rows, nearly constant factors", 0.0, 30, uneven, 0.1),
        ("8 groups of 50 rows, unrelated", 0.0, 8, even, 1.0),
        ("30 groups of 50 rows, related by .3", 0.3, 30, even, 1.0),
        ("30 groups of 50 rows, related by .6", 0.6, 30, even, 1.0),
        ("8 groups of 50 rows, related by .6", 0.6, 8, even, 1.0),
    ):
        draw = lambda rng, r=related, g=n_groups, s=rows, w=within: grouped(rng, r, g, s, w)  # noqa: E731
        false_alarms(title, draw, 100, metrics, n)


def intervals(n: int, metrics: list[str]) -> None:
    print(f"{'coverage':<34}" + "".join(f"{name:>12}" for name in metrics))
    for title, n_groups, rows in (
        ("30 groups of 50 rows", 30, even),
        ("30 groups of 10 to 90 rows", 30, uneven),
        ("15 groups of 50 rows", 15, even),
        ("10 groups of 50 rows", 10, even),
    ):
        for related in (0.5, 1.0):
            coverage(f"{title}, {related:g}", n_groups, rows, related, metrics, n)


def coverage(
    title: str,
    n_groups: int,
    rows: Callable[[np.random.Generator, int], np.ndarray],
    related: float,
    metrics: list[str],
    n: int,
) -> None:
    found: list[list[Interval]] = []
    blind: list[list[Interval]] = []
    heads = []
    for sample in range(3 * n):
        held = grouped(np.random.default_rng([n_groups, sample]), related, n_groups, rows)
        asked = CONFIDENCE if sample < n else None
        card = score(held, metrics=metrics, confidence=asked)
        heads.append([card.scored[name].headline for name in metrics])
        if asked:
            found.append([_interval(card, name) for name in metrics])
        if sample < n // 10:
            plain = Representation(held.codes, held.factors, kinds=held.kinds)
            alone = score(plain, metrics=metrics, confidence=CONFIDENCE)
            blind.append([_interval(alone, name) for name in metrics])
    truth = np.mean(heads, axis=0)
    for which, own in (("", found), ("  as if rows were independent", blind)):
        held_by = np.mean([[each.low <= t <= each.high for each, t in zip(row, truth, strict=True)] for row in own], 0)
        print(f"{which or title:<34}" + "".join(f"{share:>12.1%}" for share in held_by), flush=True)
    deviation = np.std(heads, axis=0, ddof=1)
    ratio = np.sqrt(np.mean([[each.deviation**2 for each in row] for row in found], axis=0)) / deviation
    print(f"{'  estimated deviation / true':<34}" + "".join(f"{each:>12.2f}" for each in ratio), flush=True)


def _interval(card, name: str) -> Interval:  # noqa: ANN001
    known = card.scored[name].intervals
    return known.values[card.scored[name].metric.headline]


def compared(n: int, metrics: list[str]) -> None:
    """Equal models; groups have 50 rows, or those of the second about as many."""
    print(f"{f'p <= .05 of {n} comparisons':<52}" + "".join(f"{name:>11}" for name in metrics))
    for title, many in (("10 groups against 40", even), ("the same, 40 of 10 to 90 rows", uneven)):
        low: Counter[str] = Counter()
        for sample in range(n):
            rng = np.random.default_rng(sample)
            models = {"few": grouped(rng, 1.0, 10), "many": grouped(rng, 1.0, 40, many)}
            found = compare(models, metrics=metrics, confidence=CONFIDENCE)
            low.update(each.metric for each in found.differences if each.p <= P)
        print(f"{title:<52}" + "".join(f"{low[name]:>11}" for name in metrics), flush=True)


def note(n: int, _: list[str]) -> None:
    """Of shuffled rows never, of walks always."""
    for n_samples in (100, 1000, 10_000):
        told = {"walks": 0, "shuffled walks": 0, "noise": 0}
        for sample in range(n):
            rng = np.random.default_rng(sample)
            held = walk(rng, 0.1, n_samples)
            told["walks"] += bool(note_on_neighbours(held, null=True, confidence=True))
            mixed = held.keep_rows(rng.permutation(n_samples))
            told["shuffled walks"] += bool(note_on_neighbours(mixed, null=True, confidence=True))
            plain = Representation(rng.standard_normal((n_samples, 64)), rng.integers(0, 5, (n_samples, 5)))
            told["noise"] += bool(note_on_neighbours(plain, null=True, confidence=True))
        print(
            f"{n_samples:>7} rows: " + ", ".join(f"{name} {count} of {n}" for name, count in told.items()), flush=True
        )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("what", choices=["walks", "groups", "intervals", "compare", "note"])
    parser.add_argument("--samples", type=int)
    parser.add_argument("--metrics")
    given = parser.parse_args()
    works = {"walks": walks, "groups": groups, "intervals": intervals, "compare": compared, "note": note}
    work = works[given.what]
    default = ["mig", "sap", "snc", "modularity", "dci_lasso"] if given.what == "intervals" else AT_ONCE
    metrics = given.metrics.split(",") if given.metrics else default
    work(
        given.samples or {"walks": 100, "groups": 200, "intervals": 200, "compare": 200, "note": 100}[given.what],
        metrics,
    )


if __name__ == "__main__":
    main()
