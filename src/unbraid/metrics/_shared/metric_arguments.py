"""Metrics with arguments, by name: "mig(bins=10)" is a metric of its own, so that two settings of one never mix."""

import ast
import inspect
import re
from collections.abc import Callable, Collection, Mapping
from contextlib import suppress
from dataclasses import fields, is_dataclass, replace
from functools import cache, partial
from typing import Any, get_args, get_type_hints

import numpy as np
from pydantic import ConfigDict, PydanticSchemaGenerationError, TypeAdapter, ValidationError

from unbraid.base.suggest import suggestion
from unbraid.files.trust import Trusted, code_of, is_code
from unbraid.metrics import METRICS, PRESETS
from unbraid.metrics._shared.metric import Metric

LONGEST = 200  # letters of a name
# Not to be chosen: they come with the codes, or once for all metrics.
GIVEN = (
    "codes", "factors", "kinds", "sizes", "weights", "groups", "log_variances", "prior_kl", "held_out", "seed",
    "progress", "test_codes", "test_factors",
)  # fmt: skip
DCI = ("dci_lasso", "dci_forest", "dci_boosted")
WORDS: Mapping[str, tuple[str, ...]] = {  # what papers and other packages call them
    "completeness": DCI, "informativeness": DCI, "rf": ("dci_forest",), "dcirf": ("dci_forest",),
    "dcigbt": ("dci_boosted",), "dcixgb": ("dci_boosted",), "bvae": ("beta_vae_score",), "fvae": ("factor_vae_score",),
    "rmig": ("mig",), "tc": ("elbo_terms",), "totalcorrelation": ("elbo_terms",), "kl": ("elbo_terms",),
    "rsquared": ("r2",), "interventional": ("irs",), "separatedattributepredictability": ("sap",),
}  # fmt: skip


def metric_hint(name: str) -> str:
    """What to say to somebody who named a metric that there is not."""
    if own := _as_code(name):
        return f"a function of your own is module:function, here {own}"
    return suggestion(name, [*METRICS, *PRESETS], words=WORDS)


def _as_code(name: str) -> str:
    """The module:function that a path or a name with dots stands for; nothing where it is neither."""
    module, _, function = name.replace("/", ".").replace("\\", ".").replace(".py:", ":").rpartition(":")
    if not module:
        module, _, function = function.rpartition(".")
    code_name = f"{module.strip('.')}:{function}"
    return code_name if is_code(code_name) and module not in METRICS and function != "py" else ""


def find_metric(name: str) -> Metric | None:
    """The row of a metric of the table, with arguments or without; None for all other names."""
    if name in METRICS:
        return METRICS[name]
    try:
        return with_arguments(name)[1] if has_arguments(name) else None
    except ValueError:
        return None


def has_arguments(name: str) -> bool:
    """Whether a name is that of a metric of the table with something in brackets."""
    return name.endswith(")") and name.partition("(")[0] in METRICS


def full_name(name: str) -> str:
    """The one name of a metric with these arguments: in the order of its function, without those at their defaults.

    Raises:
        ValueError: as `with_arguments`, or `lower_is_better`.
    """
    if not is_code(code := code_of(name)):
        return with_arguments(name)[0] if has_arguments(name) else name
    full = f"{code}(direction=lower)" if lower_is_better(name) else code
    return name.spelled(full) if isinstance(name, Trusted) else full


def lower_is_better(name: str) -> bool:
    """Whether the name of a function of the user's says so: "package.module:function(direction=lower)".

    Tables of results hold no more of a metric than its name.

    Raises:
        ValueError: something else stands in the brackets.
    """
    option = re.sub(r"[\s'\"]", "", name.removeprefix(code_of(name)))
    if option not in ("", "(direction=higher)", "(direction=lower)"):
        raise ValueError(f"{name}: a function of your own takes direction=lower or direction=higher, and no more")
    return option == "(direction=lower)"


def arguments_of(name: str) -> Mapping[str, Any]:
    """The arguments in the full name of a metric."""
    row = find_metric(name)
    return row.function.keywords if row is not None and isinstance(row.function, partial) else {}


def values_of(row: Metric) -> list[str]:
    """Names of the numbers of its result, some of which may be None; none of a function of the user's."""
    result: Any = get_type_hints(getattr(row.function, "func", row.function)).get("return")  # of a partial its own
    if not is_dataclass(result):
        return []
    hints = get_type_hints(result)
    return [each.name for each in fields(result) if float in {hints[each.name], *get_args(hints[each.name])}]


def choosable(row: Metric) -> dict[str, TypeAdapter[Any]]:
    """What checks each argument that a name can hold, in the order of the function; arrays are none of them."""
    adapters: dict[str, TypeAdapter[Any]] = {}
    hints = get_type_hints(row.function)
    for argument in inspect.signature(row.function).parameters:
        with suppress(PydanticSchemaGenerationError):
            if argument not in GIVEN:
                adapters[argument] = TypeAdapter(hints[argument], config=ConfigDict(strict=True, allow_inf_nan=False))
    return adapters


@cache
def with_arguments(name: str) -> tuple[str, Metric]:
    """The full name of a metric with arguments, such as "mig(bins=10, binning=mass)", and its row.

    What independent noise scores is not known of it, and intervals are found by scoring each part.

    Raises:
        ValueError: it cannot be read, or the metric has no such argument, or refuses this value of it.
    """
    metric = name.partition("(")[0]
    row = METRICS[metric]
    arguments = _read(name)
    signature, known = inspect.signature(row.function).parameters, choosable(row)
    values: dict[str, Any] = {}
    for argument, value in arguments.items():
        if argument not in known:
            hint = suggestion(argument, list(known)) if known else f"{metric} has none"
            raise ValueError(f"{name}: {metric} takes no argument {argument!r}; {hint}")
        try:
            values[argument] = known[argument].validate_python(value)
        except ValidationError as error:
            message = error.errors()[0]["msg"]
            raise ValueError(f"{name}: {argument}: {message[0].lower()}{message[1:]}; got {value!r}") from None
    chosen = {each: values[each] for each in known if each in values and values[each] != signature[each].default}
    if not chosen:
        return metric, row
    words = [f"{argument}={value}" for argument, value in chosen.items()]
    text = ", ".join(words)
    function = partial(row.function, **chosen)
    if refused := _refused(function, known):
        raise ValueError(f"{name}: {refused}")
    span = next((row.ranges[word] for word in words if word in row.ranges), row.range)
    return f"{metric}({text})", replace(
        row, function=function, title=f"{row.title} ({text})", range=span, chance=None, of_parts=None,
        of_shuffles=None,
    )  # fmt: skip


def _refused(function: Callable[..., Any], known: Collection[str]) -> str:
    """What a metric says of its arguments; "" where it takes them, whatever it says of the codes.

    A metric checks its arguments before it computes anything, and of two rows with a level each there is little that it
    could compute.
    """
    rows = np.arange(2).reshape(-1, 1)
    arguments = {name: rows for name in ("codes", "factors") if name in inspect.signature(function).parameters}
    try:
        function(**arguments)
    except Exception as error:  # of a package's metric, any
        return str(error) if str(error).split(" ")[0].strip(",") in known else ""
    return ""


def _read(name: str) -> dict[str, Any]:
    wrong = f"{name[:LONGEST]!r} cannot be read; write a metric with arguments as mig(bins=10, binning=mass)"
    try:
        call = ast.parse(name, mode="eval").body if len(name) <= LONGEST else None
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        raise ValueError(wrong) from None
    if not isinstance(call, ast.Call) or call.args or not isinstance(call.func, ast.Name):
        raise ValueError(wrong)
    arguments: dict[str, Any] = {}
    for keyword in call.keywords:
        try:
            value = keyword.value.id if isinstance(keyword.value, ast.Name) else ast.literal_eval(keyword.value)
        except (ValueError, TypeError):
            raise ValueError(wrong) from None
        plain = isinstance(value, int | float | None) or isinstance(value, str) and re.fullmatch(r"\w{1,50}", value)
        if keyword.arg is None or not plain:
            raise ValueError(wrong)
        if keyword.arg in arguments:
            raise ValueError(f"{name}: {keyword.arg} is given twice")
        arguments[keyword.arg] = value
    return arguments
