"""Pages of every public class and function, and how autodoc reads them.

What is public: the names in `__all__` of `unbraid` and of every module in it that has one. Nothing is listed by hand.
"""

import ast
import dataclasses
import inspect
import posixpath
import re
import textwrap
from collections.abc import Iterator, Mapping
from functools import cache
from importlib import import_module
from pathlib import Path
from types import ModuleType
from typing import Any

import unbraid
from pages.texts import escaped, table
from unbraid.metrics import MEASURES

SOURCE = Path(unbraid.__path__[0])


@cache
def modules() -> dict[str, ModuleType]:
    """`unbraid` and the public modules in it, by name."""
    found = {"unbraid": unbraid}
    for path in sorted(SOURCE.rglob("*.py")):
        parts = path.relative_to(SOURCE).with_suffix("").parts
        if parts[0] == "cli" or any(part.startswith("_") and part != "__init__" for part in parts):
            continue  # commands have a page of their own
        if "\n__all__ = " in path.read_text(encoding="utf-8"):  # only then imported: some need what is not installed
            name = ".".join(["unbraid", *parts]).removesuffix(".__init__")
            found[name] = import_module(name)
    return found


def homes() -> dict[str, tuple[str, Any]]:
    """Page and object of every public name; what is exported twice lives where it is exported first."""
    seen: dict[int, str] = {}
    found = {}
    for place, module in modules().items():
        for name in module.__all__:
            value = getattr(module, name)
            full = f"{place}.{name}"
            if isinstance(value, ModuleType):
                page = f"reference/{value.__name__}"
            elif place == "unbraid.metrics" and name in MEASURES:
                page = f"metrics/{name}"
            else:
                page = seen.setdefault(id(value), f"reference/{full}")
            found[full] = page, value
    return found


def pages() -> Iterator[tuple[str, str]]:
    """Place and text of every page."""
    public = homes()
    rows = ((f"[`{name}`]({name}.md)", escaped(_summary(module))) for name, module in modules().items())
    yield "reference/index", f"# Classes and functions\n\n{table('module | what it has', 'll', rows)}"
    for name, module in modules().items():
        yield f"reference/{name}", module_page(name, module, public)
    for name, (page, value) in public.items():
        if page == f"reference/{name}" and not isinstance(value, ModuleType):
            yield page, object_page(name, value)


def module_page(name: str, module: ModuleType, public: dict[str, tuple[str, Any]]) -> str:
    """What a module says of itself, and a line on each of its names."""
    rows, below = [], []
    for each in module.__all__:
        page, value = public[f"{name}.{each}"]
        link = f"{posixpath.relpath(page, 'reference')}.md"
        rows.append((f"[`{each}`]({link})", escaped(_summary(value))))
        if page == f"reference/{name}.{each}" and not isinstance(value, ModuleType):
            below.append(f"{name}.{each}")
    return (
        f"# {name}\n\n```{{eval-rst}}\n.. automodule:: {name}\n```\n\n{table('name | what it is', 'll', rows)}\n\n"
        + "```{toctree}\n:hidden:\n\n"
        + "\n".join(below)
        + "\n```"
    )


def _summary(value: Any) -> str:
    """The first line of a docstring that is the object's own."""
    own = isinstance(value, type | ModuleType) or inspect.isroutine(value)
    return (inspect.getdoc(value) or "").partition("\n")[0] if own else ""


def object_page(name: str, value: Any) -> str:
    """One class, function or table."""
    if isinstance(value, type):
        kind = "autoexception" if issubclass(value, BaseException) else "autoclass"
        options = "\n   :members:"
    elif inspect.isroutine(value):
        kind, options = "autofunction", ""
    else:
        kind, options = "autodata", "\n   :no-value:"
    return f"# {name.rpartition('.')[2]}\n\n```{{eval-rst}}\n.. {kind}:: {name}{options}\n```"


def describe(_app: Any, what: str, _name: str, value: Any, _options: Any, lines: list[str]) -> None:
    """Make a docstring reStructuredText: escape what would be markup, and list the fields of a dataclass."""
    if what == "class" and dataclasses.is_dataclass(value):
        if lines and lines[0].startswith(f"{value.__name__}("):
            lines.clear()  # dataclasses write a signature where there is no docstring
        noted = _fields(value)
        if noted and "Args:" not in lines:
            lines += ["", "Attributes:", *(f"    {field}: {note}" for field, note in noted.items()), ""]
    if what == "data":  # what stands there is the docstring of its type
        lines[:] = [_table(value) if isinstance(value, Mapping) else f"``{value!r}``", ""]
    example = False
    for place, line in enumerate(lines):
        example = line.strip() in {"Example:", "Examples:"} or (example and (not line or line.startswith(" ")))
        if not example:
            lines[place] = _escaped(line)


def sign(_app: Any, what: str, _name: str, value: Any, _options: Any, *_given: Any) -> tuple[str, str] | None:
    """The signature as it is written in the code, with its short names of types."""
    if what not in {"function", "method", "class"}:
        return None
    try:
        tree = ast.parse(textwrap.dedent(inspect.getsource(inspect.unwrap(value)))).body[0]
    except (OSError, TypeError):
        return None
    if isinstance(tree, ast.FunctionDef):
        return _arguments(tree, what == "method"), ast.unparse(tree.returns) if tree.returns else ""
    if isinstance(tree, ast.ClassDef):
        makers = [each for each in tree.body if isinstance(each, ast.FunctionDef) and each.name == "__init__"]
        if makers:
            return _arguments(makers[0], True), ""
        if dataclasses.is_dataclass(value):
            written = [each for each in tree.body if isinstance(each, ast.AnnAssign)]
            return f"({', '.join(map(ast.unparse, written))})", ""
    return None


def _table(rows: Mapping[str, Any]) -> str:
    """What a table says of itself: its rows."""
    return f"A table of {len(rows)} rows by name: {', '.join(f'`{name}`' for name in rows if name)}."


def _arguments(function: ast.FunctionDef, bound: bool) -> str:
    arguments = function.args
    static = any(ast.unparse(each) == "staticmethod" for each in function.decorator_list)
    if bound and not static:
        del (arguments.posonlyargs or arguments.args)[0]
    return f"({ast.unparse(arguments)})"


def _fields(value: type) -> dict[str, str]:
    """What stands in the comment beside each field."""
    names = {field.name for field in dataclasses.fields(value)}
    found = re.findall(r"^    (\w+): [^#\n]*?#:? (.+)$", inspect.getsource(value), flags=re.MULTILINE)
    return {name: note for name, note in found if name in names}


def _escaped(line: str) -> str:
    pieces = re.split(r"(`[^`]*`|\*\*\w[^*]*\*\*)", line)  # code, and what is bold
    return "".join(
        piece if number % 2 else re.sub(r"(\*|\||_\b)", r"\\\1", piece) for number, piece in enumerate(pieces)
    )


def setup(app: Any) -> dict[str, bool]:
    """Let autodoc read docstrings and signatures so; napoleon comes after."""
    app.connect("autodoc-process-docstring", describe, priority=400)
    app.connect("autodoc-process-signature", sign)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
