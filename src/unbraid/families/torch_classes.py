"""Optimizers and schedules of PyTorch by name, with their options in brackets: "SGD(momentum=0.9)"."""

import ast
import inspect
from collections.abc import Sequence
from importlib import import_module
from typing import Any

from unbraid.base.suggest import suggestion

# Of a module, the classes that can be named are those derived from this one.
BASES = {"torch.optim": "Optimizer", "torch.optim.lr_scheduler": "LRScheduler"}
SET = {"params", "optimizer", "lr", "last_epoch"}  # arguments that training sets itself


def torch_class(module: str, text: str, choices: Sequence[str] = ()) -> tuple[type, dict[str, Any]]:
    """The class of a torch module that a text names, and its options.

    Args:
        module: a key of BASES.
        text: "CosineAnnealingLR(T_max=1000)"; values as in Python: numbers, texts, True, None, lists.
        choices: what may stand there instead, for errors.

    Raises:
        ValueError: not of this form, no such class, or an option that it has not.
    """
    try:
        call = ast.parse(text, mode="eval").body
        target = call.func if isinstance(call, ast.Call) else call
        options = {str(keyword.arg): ast.literal_eval(keyword.value) for keyword in getattr(call, "keywords", ())}
        if not isinstance(target, ast.Name) or getattr(call, "args", ()):
            raise ValueError
    except (SyntaxError, ValueError, MemoryError, RecursionError):
        raise ValueError(f"write it as in Python, such as SGD(momentum=0.9, nesterov=True); got {text!r}") from None
    classes = torch_classes(module)
    if target.id not in classes:
        raise ValueError(f"there is no {target.id}; {suggestion(target.id, [*choices, *classes])}")
    known = set(inspect.signature(classes[target.id]).parameters) - SET
    for option in options:
        if option == "lr":
            raise ValueError(f"{target.id} takes its learning rate from the hyperparameter, not from the option lr")
        if option not in known:
            raise ValueError(f"{target.id} has no option {option!r}; {suggestion(option, sorted(known))}")
    return classes[target.id], options


def torch_classes(module: str) -> dict[str, type]:
    """The classes of a torch module that can be named."""
    content = vars(import_module(module))
    base = content[BASES[module]]
    return {
        name: value
        for name, value in content.items()
        if inspect.isclass(value) and issubclass(value, base) and value is not base and not name.startswith("_")
    }


def canonical(module: str, text: str, choices: Sequence[str]) -> str:
    """The same class and options, always written the same way.

    Raises:
        ValueError: as `torch_class`.
    """
    named, options = torch_class(module, text, choices)
    inside = ", ".join(f"{name}={value!r}" for name, value in sorted(options.items()))
    return f"{named.__name__}({inside})" if inside else named.__name__
