"""Conditions on factors written as text: `elevation > 0.79 and red > green + 0.15`."""

import ast
import operator
import re
import unicodedata
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from unbraid.base.arguments import list_of
from unbraid.base.suggest import suggestion
from unbraid.base.types import BoolArray, FloatArray

LONGEST = 1000  # characters
Predicate = Callable[[FloatArray], BoolArray]

_COMPARE: dict[type[ast.cmpop], Callable[[Any, Any], Any]] = {
    ast.Lt: operator.lt,
    ast.LtE: operator.le,
    ast.Gt: operator.gt,
    ast.GtE: operator.ge,
    ast.Eq: operator.eq,
    ast.NotEq: operator.ne,
}
_ARITHMETIC: dict[type[ast.operator], Callable[[Any, Any], Any]] = {
    ast.Add: operator.add,
    ast.Sub: operator.sub,
    ast.Mult: operator.mul,
    ast.Div: operator.truediv,
    ast.Mod: operator.mod,
}


def predicate(text: str, names: Sequence[str]) -> Predicate:
    """A function from factors (n_samples, n_factors) to the rows (n_samples,) where the condition holds.

    Args:
        text: comparisons (< <= > >= == !=) of factor names and numbers, with + - * / %, joined by
            `and`, `or`, `not` and brackets. Nothing else is evaluated.
        names: the factors, in the order of their columns.

    Raises:
        ValueError: the text is no such condition, or names an unknown factor; `names` is no list; and, by the function,
            where the condition has no value in some row, such as x % 0.

    Example:
        >>> inside = predicate("size > 1 and (hue == 0 or hue == 3)", ["size", "hue"])
        >>> inside(np.array([[2, 3], [2, 1], [0, 0]])).tolist()
        [True, False, False]
    """
    names = list_of("names", names)
    if len(text) > LONGEST:
        raise ValueError(f"a condition has at most {LONGEST} characters; this has {len(text):,}")
    try:
        tree = ast.parse(text.strip(), mode="eval").body
    except (RecursionError, MemoryError):
        raise ValueError(f"condition {text!r} is nested too deeply") from None
    except SyntaxError as error:
        hint = "; equal is written ==" if re.search(r"(?<![<>=!])=(?!=)", text) else ""
        raise ValueError(f"condition {text!r} cannot be read: {error.msg} at character {error.offset}{hint}") from error
    # Python reads names in this normal form.
    columns = {unicodedata.normalize("NFKC", name): column for column, name in enumerate(names)}

    def value(node: ast.expr, factors: FloatArray) -> Any:
        match node:
            case ast.Constant(value=int() | float() as number) if not isinstance(number, bool):
                return number
            case ast.Name(id=name):
                if name not in columns:
                    raise ValueError(f"condition {text!r} names no factor {name!r}; {suggestion(name, names)}")
                return factors[:, columns[name]]
            case ast.BinOp(left=left, op=op, right=right) if type(op) in _ARITHMETIC:
                return _ARITHMETIC[type(op)](value(left, factors), value(right, factors))
            case ast.UnaryOp(op=ast.USub(), operand=operand):
                return -value(operand, factors)
        raise _unreadable(text, node)

    def holds(node: ast.expr, factors: FloatArray) -> BoolArray:
        match node:
            case ast.BoolOp(op=op, values=parts):
                join = np.logical_and if isinstance(op, ast.And) else np.logical_or
                return join.reduce([holds(part, factors) for part in parts])
            case ast.UnaryOp(op=ast.Not(), operand=operand):
                return ~holds(operand, factors)
            case ast.Compare(left=left, ops=ops, comparators=rights) if all(type(op) in _COMPARE for op in ops):
                sides = [value(side, factors) for side in (left, *rights)]
                pairs = zip(ops, sides[:-1], sides[1:], strict=True)
                met = [np.broadcast_to(_COMPARE[type(op)](a, b), len(factors)) for op, a, b in pairs]
                return np.logical_and.reduce(met)
        raise _unreadable(text, node)

    def rows(factors: FloatArray) -> BoolArray:
        try:
            with np.errstate(divide="ignore", over="ignore", invalid="raise"):
                return holds(tree, np.asarray(factors, dtype=np.float64))  # small whole numbers would wrap around
        except FloatingPointError as error:
            raise ValueError(f"condition {text!r} has no value in some rows: {error}") from None

    try:
        with np.errstate(all="ignore"):
            holds(tree, np.ones((1, len(names))))  # an unknown name should fail here, not at first use
    except RecursionError:
        raise ValueError(f"condition {text!r} is nested too deeply") from None
    except (ZeroDivisionError, OverflowError) as error:
        raise ValueError(f"condition {text!r} has no value: {error}") from None
    return rows


def _unreadable(text: str, node: ast.expr) -> ValueError:
    part = ast.get_source_segment(text.strip(), node) or text
    return ValueError(f"condition {text!r}: {part!r} is neither a comparison of factors nor and/or/not of such")
