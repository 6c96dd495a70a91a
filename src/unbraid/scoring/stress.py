"""Stress test: metrics on codes with known faults, and whether each does what it claims."""

import functools
import math
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import closing
from dataclasses import asdict, dataclass, replace
from types import MappingProxyType
from typing import Any, Literal, TypeAlias

import numpy as np

from unbraid.base.arguments import check_number, check_whole, list_of
from unbraid.base.repr import Shown
from unbraid.base.suggest import suggestion
from unbraid.base.types import Progress
from unbraid.data import Representation
from unbraid.files.trust import trusting
from unbraid.metrics import METRICS, Claim, Metric, NotDefined
from unbraid.metrics.own_metric import row_of
from unbraid.scoring.engine import score_each
from unbraid.scoring.processes import ENCODERS, PROCESSES, named
from unbraid.scoring.score import Named, choose
from unbraid.scoring.scored import Scored
from unbraid.scoring.synthetic_codes import CASES, CHANGES, GAP, GROUPS, SPACE, Case, in_halves, upper_corner

Demand: TypeAlias = Literal["stays", "falls"]

LINE = 0.9  # of the way from noise to perfect codes: a score that stays is above it, one that falls below
LEAST = 0.02  # by which perfect codes beat noise
ROUNDING = 1e-6  # beyond the ends of a range
SLACK = 0.05  # of that way: what counts as no change, and as no better than noise

# What whoever claims it has to make of each fault, on the way from noise (0) to perfect codes (1).
CLAIMS: Mapping[Claim, str] = MappingProxyType(
    {
        "modularity": "each code is about one factor only",
        "compactness": "each factor is in one code only",
        "alignment": "each factor has a code to itself",
        "explicitness": "the factors can be read from the codes",
    }
)
DEMANDS: Mapping[Claim, Mapping[str, Demand]] = MappingProxyType(
    {
        "modularity": {
            "circle": "stays", "twice": "stays", "angle on a circle": "stays", "two in one": "falls",
            "rotated": "falls", "dependent factors, rotated": "falls", "continuous, rotated": "falls",
            "all alike": "falls",
        },
        "compactness": {
            "twice": "falls", "one lost": "falls", "split": "falls", "rotated": "falls",
            "dependent factors, rotated": "falls", "continuous, rotated": "falls", "all alike": "falls",
            "one factor copied": "falls",
        },
        "alignment": {
            "one lost": "falls", "two in one": "falls", "split": "falls", "rotated": "falls",
            "dependent factors, rotated": "falls", "continuous, rotated": "falls", "all alike": "falls",
            "one factor copied": "falls",
        },
        "explicitness": {
            "circle": "stays", "twice": "stays", "angle on a circle": "stays", "one lost": "falls",
            "rotated": "stays", "dependent factors, rotated": "stays", "continuous, rotated": "stays",
            "all alike": "falls", "one factor copied": "falls",
        },
    }
)  # fmt: skip
ALWAYS: Mapping[str, Demand] = MappingProxyType(
    {
        "beside codes of noise": "stays", "uneven levels": "stays", "dependent factors": "stays",
        "few rows": "stays", "continuous factors": "stays",
    }
)  # fmt: skip
# What whoever claims it has to make of each encoder, whatever process draws the factors. What is missing is shown and
# not judged: no demand follows from the claim alone. Codes that a curve reads are told, but not by a line.
ENCODED: Mapping[Claim, Mapping[str, Demand]] = MappingProxyType(
    {
        "modularity": {
            "bent": "stays", "copied": "stays", "bent twice": "stays", "sine and cosine": "stays",
            "entangled": "falls", "entangled, wide": "falls",
        },
        "compactness": {
            "bent": "stays", "lossy": "falls", "copied": "falls", "bent twice": "falls", "sine and cosine": "falls",
            "entangled": "falls", "entangled, wide": "falls",
        },
        "alignment": {"bent": "stays", "lossy": "falls", "entangled": "falls", "entangled, wide": "falls"},
        "explicitness": {"copied": "stays", "lossy": "falls", "entangled": "stays", "entangled, wide": "stays"},
    }
)  # fmt: skip
# Two factors of which one is a function of the other have two codes that tell both: no metric can say which is whose.
SHARED = "one from one"
NOISE = (
    "uneven levels, noise", "few rows, noise", "heavy-tailed noise", "many codes, few rows, noise",
    "rare classes, noise", "constant", "nearly constant", "sparse noise",
    *(named(process, encoder) for process in PROCESSES for encoder in ("Gaussian noise", "uniform noise")),
)  # fmt: skip
# Where perfect codes need not score as on the grid: what their score is, and for processes what noise scores there.
ENDS: Mapping[str, tuple[str, str]] = MappingProxyType(
    {
        "dependent factors, rotated": ("dependent factors", "noise"),
        "continuous, rotated": ("continuous factors", "noise"),
        **{
            named(process, encoder): (named(process, "plain"), named(process, "Gaussian noise"))
            for process in PROCESSES
            for encoder in ENCODERS
            if not encoder.endswith("noise")
        },
        named("correlated", "plain"): (named("independent", "plain"), named("independent", "Gaussian noise")),
    }
)
# Codes of which none alone tells anything, or all tell the same, may score as noise does, and worse.
WITHOUT_SHARE = ("noise", "split", "all alike", "one factor copied")


@dataclass(frozen=True)
class Check:
    """One thing that a metric must do, and whether it does."""

    situation: str
    demand: str
    passed: bool | None  # None where the metric is not defined
    score: float | None  # None where there is none
    share: float | None  # of the way from noise, 0, to perfect codes, 1
    why: str = ""  # there is no score


@dataclass(frozen=True, eq=False, repr=False)
class Stressed(Shown):
    """One value of one metric: what it claims, each check, and its scores in situations that decide nothing, too."""

    metric: str
    value: str
    claims: tuple[Claim, ...]
    checks: tuple[Check, ...]
    scores: Mapping[str, float | None]

    @property
    def failed(self) -> tuple[Check, ...]:
        return tuple(check for check in self.checks if check.passed is False)

    @property
    def n_passed(self) -> int:
        return sum(check.passed is True for check in self.checks)

    @property
    def passed(self) -> bool:
        """Whether nothing failed, and something was judged."""
        return self.n_passed > 0 and not self.failed

    def to_dict(self) -> dict[str, Any]:
        """As the JSON file has it."""
        return {
            "metric": self.metric, "value": self.value, "claims": list(self.claims), "passed": self.passed,
            "checks": [asdict(check) for check in self.checks], "scores": dict(self.scores),
        }  # fmt: skip

    def __str__(self) -> str:
        judged = self.n_passed + len(self.failed)
        claims = ", ".join(f"{claim} ({CLAIMS[claim]})" for claim in self.claims) or "nothing in particular"
        head = f"{self.metric} {self.value}, which claims {claims}: {self.n_passed} of {judged} passed"
        return "\n".join([head, *(_line(check) for check in self.checks)])


def stress(
    *metrics: Named,
    claims: str | Sequence[str] | None = None,
    cases: str | Sequence[str] | None = None,
    value: str | None = None,
    higher_is_better: bool = True,
    best: float | None = None,
    seed: int = 0,
    progress: Progress | None = None,
) -> tuple[Stressed, ...]:
    """Put metrics through codes of known faults, and judge whether each does what it claims.

    The faults: a factor in two codes, in none, two factors in one, each in two codes that tell nothing alone, codes
    that are rotated, noisy, scaled, reordered, idle or beside irrelevant ones; factors of uneven levels, factors that
    depend on each other, few rows, continuous and cyclic factors, rare classes, noise of heavy tails or in many codes;
    codes that are constant, or but for a billionth, or zero most of the time, or all alike; and ten encoders of four
    processes that draw factors (independent, correlated, one a function of one or of two others), after Joshi et al.
    2026. Each score is placed on the way from noise, 0, to perfect codes, 1: it has stayed above .9, and has fallen
    below.

    Args:
        *metrics: ids of `unbraid.metrics.METRICS`; "module:function", or a function, of your own, from codes
            (n_samples, n_codes) and factors (n_samples, n_factors) to a number, an array or tensor without dimensions,
            a Result, or a mapping from names to numbers, each of which is judged. It is given `kinds`, `sizes`,
            `log_variances`, `held_out` and `seed` where it takes them. None: those of the table that claim anything
            and are scored by default.
        claims: what it claims of "modularity", "compactness", "alignment" and "explicitness", in place of what the
            table says; see `CLAIMS`. A metric that claims several must punish what any of these forbids.
        cases: which of "faults", "factors", "noise", "null" and "processes" to go through; see
            `unbraid.scoring.synthetic_codes.GROUPS`. Perfect codes and noise always are. Default: all.
        value: the only one to judge, of a mapping that a function of your own returns or of what a metric claims.
        higher_is_better: of a function of your own.
        best: what perfect codes should score, such as 1. Where it is given they must come as near as 5 % of the way
            from noise, which a wrong base of a logarithm does not.
        seed: draws the codes, and is the metric's.
        progress: called as progress(situation, done, total).

    Returns:
        One `Stressed` for each value that claims anything: a table as text, `passed`, `checks`, `scores`. A function of
        your own that claims nothing is judged by what every metric must do: tell perfect codes from noise, whatever
        the levels' shares, dependence, scale, order, idle and irrelevant codes.

    Raises:
        ValueError: an unknown metric, claim, group of cases or value, or a metric of the table that claims none of
            these.

    Example:
        >>> only = stress("mig")[0]
        >>> only.claims, len(only.failed), round(only.scores["twice"], 6)
        (('compactness',), 3, 0.0)
    """
    check_whole("seed", seed, 0)
    if best is not None:
        check_number("best", best)
    chosen, through = _rows(metrics, _claims(claims), higher_is_better), _cases(cases)
    results: dict[str, dict[str, Scored | Exception]] = {name: {} for name in chosen}
    for done, (situation, case) in enumerate(through.items()):
        if progress is not None:
            progress(situation, done, len(through))
        representation = case(np.random.default_rng(seed))
        for name, scored in scored_each(representation, chosen, seed=seed):
            results[name][situation] = scored
            if value is not None and isinstance(scored, Scored):
                _check_value(name, value, _values(chosen[name], {situation: scored}))
    return tuple(
        _judged(name, row, judged_value, claimed, results[name], best)
        for name, row in chosen.items()
        for judged_value, claimed in _values(row, results[name]).items()
        if value is None or judged_value == value
    )


def scored_each(case: Representation, chosen: Mapping[str, Metric], *, seed: int = 0) -> list[tuple[str, Any]]:
    """Each metric with its `Scored`, or the error that it raised; attributes of two values where it reads these."""
    for_halves = {name: row for name, row in chosen.items() if row.binary}
    regular = {name: row for name, row in chosen.items() if not row.binary}
    results = []
    for representation, rows in ((case, regular), (in_halves(case), for_halves)):
        if rows:
            gap = GAP if representation.names == SPACE.names else upper_corner
            held_out = None if representation is not case else gap
            with closing(score_each(representation, rows, seed=seed, held_out=held_out, with_chance=False)) as each:
                results += list(each)
    return results


def _rows(metrics: Sequence[Named], claims: tuple[Claim, ...] | None, higher_is_better: bool) -> dict[str, Metric]:
    if not metrics:
        metrics = [name for name, row in METRICS.items() if row.standard and row.claims]
    rows: dict[str, Metric] = {}
    for name, row in rows_named(metrics, higher_is_better=higher_is_better).items():
        if claims is not None:
            row = replace(row, claims={row.headline: claims})
        if not row.claims:
            raise ValueError(f"{name} claims neither {', '.join(CLAIMS)}; say with claims= what to check")
        rows[name] = row
    return rows


def rows_named(metrics: Sequence[Named], *, higher_is_better: bool = True) -> dict[str, Metric]:
    """The rows of metrics by name; those of the user's own claim nothing, and each number of a mapping is a value.

    Args:
        metrics: ids, presets, "module:function", functions or rows, as for `stress`.
        higher_is_better: of functions of the user's own.

    Raises:
        ValueError: as `choose`; or two functions have one name.
    """
    rows: dict[str, Metric] = {}
    functions: dict[str, Callable[..., Any]] = {}
    for metric in metrics:
        if callable(metric) and not isinstance(metric, Metric):
            name = f"{metric.__module__}:{getattr(metric, '__qualname__', type(metric).__qualname__)}"
            named = {name: row_of(metric, name)}
        else:
            named = choose(trusting([metric]))
        for name, row in named.items():
            if functions.setdefault(name, row.function) is not row.function:
                raise ValueError(
                    f"two metrics are called {name!r}; give one another name with unbraid.metrics.custom_metric"
                )
            if name not in METRICS:
                upward = higher_is_better and row.higher_is_better
                wrapped = _with_entries(row.function)
                row = replace(row, function=wrapped, higher_is_better=upward, claims={row.headline: ()})
            rows[name] = row
    return rows


def _claims(claims: str | Sequence[str] | None) -> tuple[Claim, ...] | None:
    if claims is None:
        return None
    chosen = _known("claim", list_of("claims", claims, single=True), CLAIMS)
    return tuple(claim for claim in CLAIMS if claim in chosen)


def _known(what: str, names: tuple[str, ...], known: Iterable[str]) -> tuple[str, ...]:
    """These, which are known."""
    for name in names:
        if name not in known:
            raise ValueError(f"unknown {what} {name!r}; {suggestion(str(name), known)}")
    return names


def _cases(groups: str | Sequence[str] | None) -> Mapping[str, Case]:
    """Those of these groups, behind perfect codes and noise, between which all others are placed."""
    if groups is None:
        return CASES
    chosen = _known("cases", list_of("cases", groups, single=True), GROUPS)
    ends = {name: CASES[name] for name in ("perfect", "noise")}
    return ends | {name: case for group, cases in GROUPS.items() if group in chosen for name, case in cases.items()}


@dataclass(frozen=True)
class _Entries:
    """What a function of the user's own returned as a mapping: each number is judged by itself."""

    entries: Mapping[str, float]
    score: float = 0.0  # every result has one; this one is not read


def _with_entries(function: Callable[..., Any]) -> Callable[..., Any]:
    """The function, whose mappings are results."""

    @functools.wraps(function)
    def wrapper(*arguments: Any, **options: Any) -> Any:
        result = function(*arguments, **options)
        if not isinstance(result, Mapping):
            return result
        numbers = {
            str(name): float(each)
            for name, each in result.items()
            if isinstance(each, int | float) or getattr(each, "ndim", None) == 0
        }
        if not numbers:
            raise ValueError(f"gave a mapping without a number, of {', '.join(map(str, result)) or 'nothing'}")
        return _Entries(numbers)

    return wrapper


def _values(row: Metric, by_situation: Mapping[str, Scored | Exception]) -> Mapping[str, tuple[Claim, ...]]:
    """What each value claims: those of the row, or all entries of its mappings."""
    results = [scored.result for scored in by_situation.values() if isinstance(scored, Scored)]
    entries = [name for result in results if isinstance(result, _Entries) for name in result.entries]
    return dict.fromkeys(entries, row.claims[row.headline]) if entries else row.claims


def _check_value(name: str, value: str, known: Mapping[str, tuple[Claim, ...]]) -> None:
    if value not in known:
        raise ValueError(f"{name} has no value {value!r} to judge; {suggestion(value, list(known))}")


@dataclass(frozen=True)
class _Reading:
    """What a metric gives for one situation."""

    score: float | None
    reason: str = ""  # why there is no score
    undefined: bool = False  # whether the metric says that it has none here


def _reading(row: Metric, value: str, scored: Scored | Exception) -> _Reading:
    if isinstance(scored, Exception):
        message = " ".join(str(scored).split())
        if isinstance(scored, NotDefined):
            return _Reading(None, message, undefined=True)
        return _Reading(None, f"failed: {type(scored).__name__}{message and ': '}{message}")
    number = numbers_of(scored).get(value)
    low, high = row.range_of(value)
    if number is None:
        return _Reading(None, f"no value {value!r}")
    if not math.isfinite(number):
        return _Reading(None, f"failed: gave {number}")
    if not low - ROUNDING <= number <= high + ROUNDING:
        return _Reading(None, f"failed: gave {number:.3f}, outside its range, {low:g} to {high:g}")
    return _Reading(number)


def _share(readings: Mapping[str, _Reading], situation: str, upward: bool) -> float | None:
    """Of the way from noise to perfect codes; None where the metric does not separate these two."""
    ends = ENDS.get(situation, ("perfect", "noise"))
    score, whole, nothing = (readings[name].score for name in (situation, *ends))
    if score is None or whole is None or nothing is None:
        return None
    above = whole - nothing if upward else nothing - whole
    separated = above > LEAST * max(abs(whole), abs(nothing), 1e-12)
    return (score - nothing) / (whole - nothing) if separated else None


def _demands(
    claims: tuple[Claim, ...],
    readings: Mapping[str, _Reading],
    shares: Callable[[str], float | None],
    best: float | None,
) -> Iterator[tuple[str, str, Callable[[float], bool]]]:
    """Situations, what is demanded of a metric there, and whether a share meets it."""
    yield "perfect", "beats noise", lambda _: True
    if best is not None:
        whole, nothing = (readings[end].score or 0.0 for end in ("perfect", "noise"))
        yield "perfect", f"reaches {best:g}", lambda _: abs(whole - best) <= SLACK * abs(best - nothing)
    comparable = (name for name in readings if name not in (*WITHOUT_SHARE, *NOISE) and shares(name) is not None)
    worst = min(comparable, key=lambda name: shares(name) or 0.0, default="noise")
    yield worst, "is no worse than noise", lambda share: share >= -SLACK
    noisy = shares("noisy") if "noisy" in readings else None
    for situation in CHANGES:
        yield situation, "changes nothing", lambda share: noisy is not None and abs(share - noisy) <= SLACK
    for situation in NOISE:
        yield situation, "is no better than noise", lambda share: share <= 1 - LINE
    for process in PROCESSES:
        yield named(process, "plain"), "beats noise", lambda share: share > 0
    demands = dict(ALWAYS)
    for claim in claims:  # what one claim forbids falls, whatever another may allow
        for situation, demand in (*DEMANDS[claim].items(), *_of_encoders(claim)):
            if demands.get(situation) != "falls":
                demands[situation] = demand
    for situation in readings:
        if situation in demands:
            stays = demands[situation] == "stays"
            yield (
                situation,
                demands[situation],
                (lambda share: share >= LINE) if stays else (lambda share: share <= LINE),
            )


def _judged(
    name: str,
    row: Metric,
    value: str,
    claims: tuple[Claim, ...],
    results: Mapping[str, Scored | Exception],
    best: float | None,
) -> Stressed:
    readings = {situation: _reading(row, value, scored) for situation, scored in results.items()}

    def share_of(situation: str) -> float | None:
        return _share(readings, situation, row.higher_is_better)

    checks = []
    for situation, demand, right in _demands(claims, readings, share_of, best):
        if situation not in readings:
            continue
        reading, share = readings[situation], share_of(situation)
        # Where the ends themselves have no meaning, nothing between them can be judged.
        ends = (situation, *ENDS.get(situation, ()))
        without = any(end in readings and readings[end].undefined for end in ends)
        passed = None if without else share is not None and right(share)
        why = reading.reason or ("" if share is not None else "perfect codes are not separated from noise")
        checks.append(Check(situation, demand, passed, reading.score, share, why))
    scores = {situation: reading.score for situation, reading in readings.items()}
    return Stressed(name, value, claims, tuple(checks), MappingProxyType(scores))


def numbers_of(scored: Scored) -> Mapping[str, float]:
    """Every number of a result; of a function of the user's own that gave a mapping, its entries."""
    return scored.result.entries if isinstance(scored.result, _Entries) else scored.values


def _of_encoders(claim: Claim) -> Iterator[tuple[str, Demand]]:
    for process in PROCESSES:
        for encoder, demand in ENCODED[claim].items():
            if process != SHARED or demand == "falls":
                yield named(process, encoder), demand


def _line(check: Check) -> str:
    mark = {True: "pass", False: "FAIL", None: "-"}[check.passed]
    numbers = "" if check.score is None else f"{check.score:8.3f}"
    share = "" if check.share is None or not math.isfinite(check.share) else f"{check.share:6.2f}"
    return f"  {mark:<5}{check.situation:<30}{check.demand:<24}{numbers:>8}{share:>7}  {check.why}".rstrip()
