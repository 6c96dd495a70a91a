"""No number that a caller may give crashes compiled code, takes all memory or ends in a traceback from inside."""

import inspect
import math
import resource
from collections.abc import Callable, Iterator
from dataclasses import is_dataclass
from functools import partial
from pathlib import Path
from types import UnionType
from typing import Any, Literal, Union, get_args, get_origin, get_type_hints

import numpy as np
import pytest

import unbraid
from tests.examples import SPACE, perfect_codes
from unbraid import data, datasets, metrics
from unbraid.datasets import DATASETS

FACTORS = SPACE.grid()
CODES = perfect_codes(FACTORS)
WRONG = (-1, 0, True, None, "20", 3.5, math.nan, math.inf, -math.inf, 10**9, 10**18, 2**70, [4], np.zeros(2), object())
HEADROOM = 2 << 30  # bytes that a call may take at most

# Arguments without a default, by name; and what some functions need beside, to read the number in question.
GIVEN: dict[str, Any] = {
    "codes": CODES,
    "factors": FACTORS,
    "space": SPACE,
    "names": ["shape", "size"],
    "factor": "hue",
    "levels": {"hue": 0},
    "n": 3,
    "n_images": 8,
    "n_rows": 3,
    "n_columns": 3,
    "capacities": [1, 2, 3],
    "losses": [0.5, 0.2, 0.0],
    "association": np.eye(3),
    "code_blocks": [[0], [1, 2]],
    "factor_blocks": [[0], [1, 2]],
    "runs": [CODES, CODES],
    "dictionary": np.eye(3),
    "features": np.eye(3),
    "dictionaries": [np.eye(3), np.eye(3)],
    "true_masks": [[0, 1, 1, 2]],
    "predicted_masks": [[0, 0, 0, 1]],
    "slots": CODES[:, :, None],
    "objects": CODES[:, :, None],
    "effect": lambda _: 0.5,
    "order": [0, 1],
    "counts": [1],
    "clean": 0.9,
    "width": 1.0,
    "function": len,
    "importance": np.eye(3),
    "activations": CODES,
    "reconstructions": CODES,
}
BESIDE: dict[str, dict[str, Any]] = {
    "mig_exact": {"log_variances": np.zeros(CODES.shape)},
    "elbo_terms": {"log_variances": np.zeros(CODES.shape)},
    "zero_shot": {"held_out": lambda rows: (rows[:, 0] == 0) & (rows[:, 1] == 0)},
    "d_lsbd": {"kinds": SPACE.kinds},
    "independence_score": {"kinds": SPACE.kinds},
    "snc": {"bins": "paper"},
    "dci_es": {"n_trees": 5},
    "sparse_probing": {"ks": [1, 2]},
    "tad": {"factors": np.array(SPACE.sizes) / 2 <= FACTORS},
    "turntables": {"n": 2},
    "wide_udr": {"codes": [CODES, CODES, -CODES]},
    "udr": {"codes": [CODES, CODES, -CODES], "kl": np.ones((3, 3)), "alpha": 0.1},
}


def numeric(function: Callable[..., Any]) -> list[str]:
    """Names of the arguments that are numbers, by their annotations; NumPy 1 spells out what an array may be."""
    parameters = inspect.signature(function).parameters.values()
    kinds = {each.name: {each.annotation, *_choices(each.annotation)} for each in parameters}
    return [name for name, found in kinds.items() if found & {int, float} and complex not in found]


def _choices(annotation: Any) -> tuple[Any, ...]:
    return get_args(annotation) if get_origin(annotation) in (Union, UnionType) else ()


def public(module: Any) -> list[Callable[..., Any]]:
    return [value for name in module.__all__ if inspect.isfunction(value := getattr(module, name))]


def given(function: Callable[..., Any]) -> dict[str, Any]:
    parameters = inspect.signature(function).parameters.values()
    required = {each.name: GIVEN[each.name] for each in parameters if each.default is each.empty}
    return required | BESIDE.get(function.__name__, {})


WALK = [
    (function, argument) for module in (metrics, data) for function in public(module) for argument in numeric(function)
]


@pytest.fixture(autouse=True)
def bounded_memory() -> Iterator[None]:
    """What takes too much gets a MemoryError, not the machine."""
    used = int(Path("/proc/self/statm").read_text().split()[0]) * resource.getpagesize()
    before = resource.getrlimit(resource.RLIMIT_AS)
    resource.setrlimit(resource.RLIMIT_AS, (used + HEADROOM, before[1]))
    yield
    resource.setrlimit(resource.RLIMIT_AS, before)


def assert_refused_or_sound(call: Callable[..., Any], argument: str, value: object) -> None:
    """Refused in one line that names the argument, or answered with finite numbers."""
    try:
        came = call(**{argument: value})
    except ValueError as error:
        came = error
    if isinstance(came, ValueError):
        assert argument in str(came) or isinstance(came, metrics.NotDefined), f"{argument}={value!r}: {came}"
        assert "\n" not in str(came)
    elif is_dataclass(came):
        numbers = [each for each in vars(came).values() if isinstance(each, float)]
        assert np.isfinite([*numbers, *getattr(came, "scores", ())]).all(), f"{argument}={value!r}: {came}"


def test_the_walk_goes_everywhere() -> None:
    walked = {function.__name__ for function, _ in WALK}
    assert walked >= set(metrics.METRICS), "each metric takes a seed at least"
    assert {("mig", "bins"), ("irs", "factor_bins"), ("udr", "alpha")} <= {(f.__name__, name) for f, name in WALK}
    assert len(walked) > 30


@pytest.mark.parametrize(("function", "argument"), WALK, ids=[f"{f.__name__}-{name}" for f, name in WALK])
def test_any_number_is_refused_or_answered(function: Callable[..., Any], argument: str) -> None:
    for value in WRONG:
        assert_refused_or_sound(partial(function, **given(function)), argument, value)
    for value in (True, "20", math.nan, [4], object()):
        with pytest.raises(ValueError, match=argument):
            function(**{**given(function), argument: value})


OPTIONS_OF_METRICS = [
    (function, option, get_args(hint))
    for function in public(metrics)
    for option, hint in get_type_hints(function).items()
    if get_origin(hint) is Literal
]


@pytest.mark.parametrize(
    ("function", "option", "choices"), OPTIONS_OF_METRICS, ids=[f"{f.__name__}-{o}" for f, o, _ in OPTIONS_OF_METRICS]
)
def test_an_unknown_choice_is_refused_with_those_that_there_are(
    function: Callable[..., Any], option: str, choices: tuple[str, ...]
) -> None:
    with pytest.raises(ValueError, match=f"^{option} must be .*; got 'none of these'$") as refused:
        function(**{**given(function), option: "none of these"})
    assert all(repr(choice) in str(refused.value) for choice in choices)


TAKES_TEST_ROWS = [
    name for name, row in metrics.METRICS.items() if "test_codes" in inspect.signature(row.function).parameters
]


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"test_codes": np.ones((4, 3))}, "must be given together"),
        ({"test_codes": np.ones((4, 2)), "test_factors": np.ones((4, 3))}, "3 and 3 columns"),
        ({"test_codes": np.ones((4, 3)), "test_factors": np.ones((4, 2))}, "3 and 3 columns"),
        ({"test_codes": np.ones((4, 3)), "test_factors": np.ones((5, 3))}, "same number of rows"),
        ({"test_codes": np.ones((4, 3)) * np.nan, "test_factors": np.ones((4, 3))}, "test_codes must be finite"),
        ({"test_codes": np.ones((4, 3)), "test_factors": np.ones((4, 3)) * np.nan}, "test_factors must be finite"),
    ],
)
@pytest.mark.parametrize("name", TAKES_TEST_ROWS)
def test_rows_to_test_on_have_to_fit(name: str, arguments: dict[str, Any], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        metrics.METRICS[name].function(CODES, FACTORS, **arguments)


@pytest.mark.parametrize("name", ["mig", "med", "modularity", "factor_leakage"])
def test_the_limit_of_bins_is_said_with_its_reason(name: str) -> None:
    with pytest.raises(ValueError, match=r"^bins must be a whole number, 1 to 10000 \(.*memory\); got 1000000000$"):
        metrics.METRICS[name].function(CODES, FACTORS, bins=10**9)
    assert metrics.METRICS[name].function(CODES, FACTORS, bins=10_000).mutual_information.min() >= 0


@pytest.mark.parametrize("name", ["d_lsbd", "independence_score"])
@pytest.mark.parametrize("value", WRONG, ids=lambda value: type(value).__name__)
def test_sizes_of_factors_are_checked(name: str, value: object) -> None:
    function = partial(metrics.METRICS[name].function, CODES, FACTORS, kinds=SPACE.kinds)
    for sizes in ([3, 4, value], value):
        assert_refused_or_sound(function, "sizes", sizes)
    for sizes in ([3, 4, value], [value, 4, 8]):
        assert_refused_or_sound(partial(unbraid.score, CODES, FACTORS, metrics="mig"), "sizes", sizes)


OPTIONS = [(name, option) for name, row in DATASETS.items() if row.rendered for option in numeric(row.open)]


NEVER = {"seed": (), "shrink": (0,)}  # options that may be as large as they like, or nothing


@pytest.mark.parametrize(("name", "option"), [*OPTIONS, ("square", "shrink")])
def test_options_of_drawn_datasets_are_checked(name: str, option: str, tmp_path: Path) -> None:
    for value in [
        -1,
        True,
        None,
        "20",
        math.nan,
        -math.inf,
        [4],
        np.zeros(2),
        object(),
        *NEVER.get(option, (0, 10**18)),
    ]:
        with pytest.raises(ValueError, match=option) as refused:
            datasets.load(name, tmp_path, **{option: value})
        assert "\n" not in str(refused.value)
    assert not list(tmp_path.iterdir())
