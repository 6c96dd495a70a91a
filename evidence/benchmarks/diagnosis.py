"""Is the diagnosis right? Planted cases of which the verdict is known, drawn anew, and what `unbraid.diagnose` says.

    python evidence/benchmarks/diagnosis.py --seed 1 --times 10

The rules, written before any case was drawn for the record: of each case and number of rows, the share of factors whose
verdict (`kind`, and `codes` and `mixture` where the case names them) is among those that the case accepts. With 2 000
rows or more at least 95 % of all verdicts are right; with 300 rows at most 2 % are wrong, where "unclear" is neither
right nor wrong; and of codes that are noise at least 98 % of the factors are "absent".
"""

import argparse
import json
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

import unbraid
from unbraid.metrics.udr import rotation

NOISES = (0.05, 0.1, 0.2, 0.35, 0.5)  # standard deviation of what is added to each code, of codes of variance 1
ROWS = (300, 2_000, 20_000)
RECORD = Path(__file__).with_suffix(".json")
ONE = frozenset({"own code"})
SPREAD = frozenset({"spread"})


@dataclass(frozen=True)
class Expected:
    """The verdicts on one factor that count as right."""

    kinds: frozenset[str]
    codes: tuple[frozenset[int], ...] = ()  # any of these sets; any at all where empty
    mixture: str = ""  # "" where either is right


@dataclass(frozen=True)
class Planted:
    codes: np.ndarray
    factors: np.ndarray
    kinds: tuple[str, ...]
    expected: tuple[Expected, ...]
    code_kinds: Mapping[int, str] = field(default_factory=dict)


def draw_factors(rng: np.random.Generator, n: int, kinds: str) -> np.ndarray:
    """A column for each letter: c a category of 4, b one of 2, o an ordinal of 6, r a real, n a normal, a an angle."""
    draws = {
        "c": lambda: rng.integers(0, 4, n),
        "b": lambda: rng.integers(0, 2, n),
        "o": lambda: rng.integers(0, 6, n),
        "r": lambda: rng.random(n),
        "n": lambda: rng.standard_normal(n),
        "a": lambda: rng.random(n) * 2 * np.pi,
    }
    return np.column_stack([draws[kind]().astype(float) for kind in kinds])


KINDS = {"c": "categorical", "b": "categorical", "o": "ordinal", "r": "continuous", "n": "continuous", "a": "cyclic"}


def standard(columns: np.ndarray) -> np.ndarray:
    return (columns - columns.mean(axis=0)) / columns.std(axis=0)


def planted(codes: np.ndarray, factors: np.ndarray, kinds: str, expected: Any, rng: np.random.Generator, noise: float,
            code_kinds: Mapping[int, str] | None = None) -> Planted:  # fmt: skip
    """Codes with noise of that many of their standard deviations."""
    codes = codes + noise * codes.std(axis=0) * rng.standard_normal(codes.shape)
    expected = (expected,) * len(kinds) if isinstance(expected, Expected) else tuple(expected)
    return Planted(codes, factors, tuple(KINDS[kind] for kind in kinds), expected, code_kinds or {})


def own(*codes: int) -> list[Expected]:
    return [Expected(ONE, (frozenset({code}),)) for code in codes]


def aligned(rng: np.random.Generator, n: int, noise: float, kinds: str = "corn") -> Planted:
    """Permuted, scaled and flipped."""
    factors = draw_factors(rng, n, kinds)
    order = rng.permutation(len(kinds))
    codes = standard(factors)[:, order] * rng.choice([-1, 1], len(kinds)) * 10 ** rng.uniform(-2, 2, len(kinds))
    return planted(codes, factors, kinds, own(*np.argsort(order)), rng, noise)


def curved(rng: np.random.Generator, n: int, noise: float) -> Planted:
    """Monotone curves of each factor, then curves that are not monotone."""
    factors = draw_factors(rng, n, "ornrn")
    z = standard(factors)
    codes = np.column_stack([
        np.exp(z[:, 0]), np.tanh(2 * z[:, 1]), z[:, 2] ** 3 / 3 + z[:, 2], np.sin(2.5 * factors[:, 3]),
        np.cos(z[:, 4] + 0.8),
    ])  # fmt: skip
    return planted(codes, factors, "ornrn", own(0, 1, 2, 3, 4), rng, noise)


def folded(rng: np.random.Generator, n: int, noise: float) -> Planted:
    """Each code the distance of a factor from some value, in the middle as well."""
    factors = draw_factors(rng, n, "rnr")
    codes = np.abs(factors - np.array([0.3, 0.0, 0.5]))
    return planted(codes, factors, "rnr", own(0, 1, 2), rng, noise)


def rotated(degrees: float) -> Callable[..., Planted]:
    def case(rng: np.random.Generator, n: int, noise: float) -> Planted:
        factors = draw_factors(rng, n, "rnro")
        turn = np.radians(degrees)
        matrix = np.kron(np.eye(2), np.array([[np.cos(turn), -np.sin(turn)], [np.sin(turn), np.cos(turn)]]))
        codes = standard(factors) @ matrix
        if degrees < 15:
            # Between the few levels of the last, what is mixed into its code can be read as well.
            expected = [*own(0, 1, 2), Expected(ONE | {"shared code"}, (frozenset({3}),))]
            return planted(codes, factors, "rnro", expected, rng, noise)
        pairs = [frozenset({0, 1})] * 2 + [frozenset({2, 3})] * 2
        return planted(codes, factors, "rnro", [Expected(SPREAD, (pair,), "linear") for pair in pairs], rng, noise)

    return case


def mixed(rng: np.random.Generator, n: int, noise: float) -> Planted:
    """Every factor in every code, by a random rotation in which no loading holds most of a factor."""
    factors = draw_factors(rng, n, "rnoro")
    while True:
        matrix = rotation(5, rng)
        if (matrix**2).max() < 0.7:
            break
    return planted(standard(factors) @ matrix, factors, "rnoro", Expected(SPREAD, (), "linear"), rng, noise)


def copied(rng: np.random.Generator, n: int, noise: float) -> Planted:
    """Each factor in two codes; `noise` is each code's own."""
    factors = draw_factors(rng, n, "rco")
    z = standard(factors)
    codes = np.column_stack([z, -2 * z])
    return planted(
        codes, factors, "rco",
        [Expected(frozenset({"copied"}), (frozenset({k, k + 3}),)) for k in range(3)], rng, noise,
    )  # fmt: skip


def copied_exactly(rng: np.random.Generator, n: int, noise: float) -> Planted:
    """The noise is copied as well."""
    factors = draw_factors(rng, n, "rco")
    case = planted(standard(factors), factors, "rco", own(0, 1, 2), rng, noise)
    expected = tuple(Expected(frozenset({"copied"}), (frozenset({k, k + 3}),)) for k in range(3))
    return Planted(np.column_stack([case.codes, -3 * case.codes]), factors, case.kinds, expected)


def halves(rng: np.random.Generator, n: int, noise: float) -> Planted:
    """One factor in two codes by the halves of its range, beside others in one code each."""
    factors = draw_factors(rng, n, "rro")
    low, high = np.minimum(factors[:, 0], 0.5), np.maximum(factors[:, 0], 0.5)
    codes = np.column_stack([low, standard(factors)[:, 1:], high])
    expected = [Expected(SPREAD, (frozenset({0, 3}),)), *own(1, 2)]
    return planted(codes, factors, "rro", expected, rng, min(noise, 0.2))


def exclusive_or(rng: np.random.Generator, n: int, noise: float) -> Planted:
    """A factor of two levels that only two codes together tell, beside others in one code each."""
    factors = draw_factors(rng, n, "bro")
    first = rng.integers(0, 2, n)
    codes = np.column_stack([first, (factors[:, 0] + first) % 2, standard(factors)[:, 1:]])
    expected = [Expected(SPREAD, (frozenset({0, 1}),), "curved"), *own(2, 3)]
    return planted(codes, factors, "bro", expected, rng, noise)


def circle(turns: int) -> Callable[..., Planted]:
    def case(rng: np.random.Generator, n: int, noise: float) -> Planted:
        factors = draw_factors(rng, n, "arc")
        angle = turns * factors[:, 0] + rng.uniform(0, 2 * np.pi)
        codes = np.column_stack([np.cos(angle), standard(factors)[:, 1:], np.sin(angle)])
        expected = [Expected(frozenset({"circle"}), (frozenset({0, 3}),)), *own(1, 2)]
        return planted(codes, factors, "arc", expected, rng, noise)

    return case


def idle(rng: np.random.Generator, n: int, noise: float) -> Planted:
    """Beside codes of their own: dead codes, and codes about something else."""
    case = aligned(rng, n, noise)
    dead, nuisance = np.full((n, 2), 0.7), rng.standard_normal((n, 3))
    kinds = {4: "dead", 5: "dead", 6: "none of these factors", 7: "none of these factors", 8: "none of these factors"}
    return Planted(np.column_stack([case.codes, dead, nuisance]), case.factors, case.kinds, case.expected, kinds)


def missing(rng: np.random.Generator, n: int, noise: float) -> Planted:
    """One factor of four is in no code."""
    case = aligned(rng, n, noise)
    lost = int(rng.integers(4))
    (place,) = case.expected[lost].codes[0]
    codes = case.codes.copy()
    codes[:, place] = rng.standard_normal(n)
    expected = list(case.expected)
    expected[lost] = Expected(frozenset({"absent"}))
    return Planted(codes, case.factors, case.kinds, tuple(expected), {place: "none of these factors"})


def two_in_one(rng: np.random.Generator, n: int, noise: float) -> Planted:
    """A code whose few values tell two factors, and one that is the sum of two."""
    factors = np.column_stack([rng.integers(0, 3, n), rng.integers(0, 4, n), rng.random(n), rng.random(n)])
    codes = np.column_stack([factors[:, 0] + 3 * factors[:, 1], factors[:, 2] + factors[:, 3], rng.standard_normal(n)])
    shared = frozenset({"shared code"})
    expected = [Expected(shared, (frozenset({k}),)) for k in (0, 0, 1, 1)]
    return planted(codes, factors.astype(float), "oorr", expected, rng, min(noise, 0.05))


def correlated(rng: np.random.Generator, n: int, noise: float) -> Planted:
    """Factors that follow from each other in part, in one code each."""
    share = rng.uniform(0.4, 0.8)
    base = rng.standard_normal(n)
    second = share * base + np.sqrt(1 - share**2) * rng.standard_normal(n)
    third = np.clip(np.rint(2.5 + 1.2 * (0.5 * base + np.sqrt(0.75) * rng.standard_normal(n))), 0, 5)
    factors = np.column_stack([base, second, third, rng.integers(0, 4, n)])
    return planted(standard(factors), factors, "nnoc", own(0, 1, 2, 3), rng, min(noise, 0.35))


def rare(rng: np.random.Generator, n: int, noise: float) -> Planted:
    """Two classes, one of 2 %, and four of which two are rare."""
    factors = np.column_stack([
        rng.random(n) < 0.02, rng.choice(4, n, p=[0.6, 0.3, 0.06, 0.04]), rng.random(n),
    ]).astype(float)  # fmt: skip
    factors[:2, 0] = 0, 1
    scale = np.array([0.3, 1.0, 0.29])  # so that noise is in units of the distance between levels
    codes = factors / scale + noise * rng.standard_normal(factors.shape) * [1.0, 0.5, 1.0]
    return Planted(codes, factors, ("categorical", "categorical", "continuous"), tuple(own(0, 1, 2)))


def many_codes(rng: np.random.Generator, n: int, noise: float) -> Planted:
    """30 codes, of which 27 are about something else."""
    factors = draw_factors(rng, n, "rco")
    codes = rng.standard_normal((n, 30))
    places = rng.choice(30, 3, replace=False)
    codes[:, places] = standard(factors)
    return planted(codes, factors, "rco", own(*places), rng, noise)


def many_codes_mixed(rng: np.random.Generator, n: int, noise: float) -> Planted:
    """3 factors and 27 sources of something else, rotated into 30 codes."""
    factors = draw_factors(rng, n, "rno")
    sources = np.column_stack([standard(factors), rng.standard_normal((n, 27))])
    return planted(sources @ rotation(30, rng), factors, "rno", Expected(SPREAD, (), "linear"), rng, noise)


def few_codes(rng: np.random.Generator, n: int, noise: float) -> Planted:
    """Six factors, three codes, each of one factor."""
    factors = draw_factors(rng, n, "rcorco")
    expected = [*own(0, 1, 2), *[Expected(frozenset({"absent"}))] * 3]
    return planted(standard(factors)[:, :3], factors, "rcorco", expected, rng, noise)


def few_codes_shared(rng: np.random.Generator, n: int, noise: float) -> Planted:
    """Six factors, three codes, each the sum of two."""
    factors = draw_factors(rng, n, "rnornr")
    codes = standard(factors)[:, :3] + standard(factors)[:, 3:]
    expected = [Expected(frozenset({"shared code"}), (frozenset({k % 3}),)) for k in range(6)]
    return planted(codes, factors, "rnornr", expected, rng, noise)


def polar(rng: np.random.Generator, n: int, noise: float) -> Planted:
    """Radius and direction of a point, in codes that are its two coordinates: the radius is spread, and not by a line."""
    factors = np.column_stack([0.5 + rng.random(n), rng.random(n) * 2 * np.pi, rng.integers(0, 4, n)])
    radius, angle = factors[:, 0], factors[:, 1]
    codes = np.column_stack([radius * np.cos(angle), radius * np.sin(angle), standard(factors[:, 2:])])
    expected = [
        Expected(SPREAD, (frozenset({0, 1}),), "curved"),
        Expected(frozenset({"circle"}), (frozenset({0, 1}),)),
        *own(2),
    ]
    return planted(codes, factors, "rac", expected, rng, min(noise, 0.1))


def noise_alone(rng: np.random.Generator, n: int, _noise: float) -> Planted:
    factors = draw_factors(rng, n, "corna")
    return Planted(
        rng.standard_normal((n, 8)), factors, tuple(KINDS[kind] for kind in "corna"),
        (Expected(frozenset({"absent"})),) * 5, dict.fromkeys(range(8), "none of these factors"),
    )  # fmt: skip


def noise_of_rare_classes(rng: np.random.Generator, n: int, noise: float) -> Planted:
    factors = rare(rng, n, noise).factors
    return Planted(
        rng.standard_normal((n, 30)), factors, ("categorical", "categorical", "continuous"),
        (Expected(frozenset({"absent"})),) * 3,
    )  # fmt: skip


CASES: Mapping[str, Callable[..., Planted]] = {
    "aligned": aligned,
    "curved": curved,
    "folded": folded,
    "rotated by 10": rotated(10),
    "rotated by 30": rotated(30),
    "rotated by 45": rotated(45),
    "mixed in all": mixed,
    "copies with own noise": copied,
    "copies": copied_exactly,
    "halves": halves,
    "exclusive or": exclusive_or,
    "circle": circle(1),
    "circle wound twice": circle(2),
    "dead and nuisance codes": idle,
    "one missing": missing,
    "two in one": two_in_one,
    "correlated": correlated,
    "rare classes": rare,
    "30 codes, 3 factors": many_codes,
    "30 codes, mixed": many_codes_mixed,
    "3 codes, 6 factors": few_codes,
    "3 codes, shared": few_codes_shared,
    "polar": polar,
    "noise": noise_alone,
    "noise, rare classes": noise_of_rare_classes,
}
NOISE = ("noise", "noise, rare classes")


def judge(case: Planted, diagnosis: Any) -> Iterator[tuple[str, str]]:
    """Of each factor: right, wrong or unclear; and what was said."""
    for verdict, expected in zip(diagnosis.factors.values(), case.expected, strict=True):
        said = f"{verdict.kind} {verdict.mixture or ''} {list(verdict.codes)}"
        if verdict.kind == "unclear":
            yield "unclear", said
            continue
        right = verdict.kind in expected.kinds
        right &= not expected.codes or frozenset(verdict.codes) in expected.codes
        right &= not expected.mixture or verdict.mixture == expected.mixture
        yield ("right" if right else "wrong"), said
    for code, kind in case.code_kinds.items():
        verdict = diagnosis.codes[code].kind
        yield ("right" if verdict == kind else "unclear" if verdict == "unclear" else "wrong"), f"code {code} {verdict}"


def measure(seed: int, times: int, rows: tuple[int, ...], names: list[str]) -> list[dict[str, Any]]:
    table = []
    for n in rows:
        for name in names:
            counts, said = Counter(), Counter()
            for repeat in range(times):
                noise = NOISES[repeat % len(NOISES)]
                rng = np.random.default_rng([seed, n, repeat, *name.encode()])
                case = CASES[name](rng, n, noise)
                names_ = [f"factor{k}" for k in range(case.factors.shape[1])]
                diagnosis = unbraid.diagnose(case.codes, case.factors, kinds=case.kinds, names=names_)
                for outcome, words in judge(case, diagnosis):
                    counts[outcome] += 1
                    if outcome == "wrong":
                        said[f"{words} (noise {noise})"] += 1
            row = {"case": name, "rows": n, **{key: counts[key] for key in ("right", "wrong", "unclear")}}
            print(json.dumps({**row, "said": dict(said.most_common(4))}), flush=True)
            table.append(row)
    return table


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--times", type=int, default=10)
    parser.add_argument("--rows", default=",".join(map(str, ROWS)))
    parser.add_argument("--cases", default=";".join(CASES))
    parser.add_argument("--record", action="store_true", help=f"write {RECORD.name}")
    options = parser.parse_args()
    rows = tuple(int(n) for n in options.rows.split(","))
    table = measure(options.seed, options.times, rows, options.cases.split(";"))
    for n in rows:
        own_rows = [row for row in table if row["rows"] == n]
        for label, chosen in (("all", own_rows), ("noise", [row for row in own_rows if row["case"] in NOISE])):
            totals = {key: sum(row[key] for row in chosen) for key in ("right", "wrong", "unclear")}
            total = max(1, sum(totals.values()))
            print(n, label, {key: f"{count / total:.1%}" for key, count in totals.items()})
    if options.record:
        RECORD.write_text(json.dumps({"seed": options.seed, "times": options.times, "cases": table}, indent=1) + "\n")


if __name__ == "__main__":
    main()
