"""A name says what it holds: words that point at something without naming it are bound nowhere in the package."""

import ast
from collections.abc import Iterator
from pathlib import Path

import pytest

SOURCE = Path(__file__).parent.parent / "src" / "unbraid"
WORDS = """about alike apart asked beside called found given held here kept lost meant others said stands such taken
tells there told wanted ways"""
POINTING = frozenset(WORDS.split())
OF_FUNCTIONS = POINTING | {"each", "own", "of", "how", "these", "those"}
KNOWN = {"data/representation.py: of"}  # `Representation.of(...)` reads as a sentence


def bound(tree: ast.AST) -> Iterator[tuple[str, bool]]:
    """Names of variables and attributes, and with True those of functions and arguments."""
    for node in ast.walk(tree):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            yield node.name, True
        elif isinstance(node, ast.arg):
            yield node.arg, True
        elif isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store):
            yield node.id, False
        elif isinstance(node, ast.Attribute) and isinstance(node.ctx, ast.Store):
            yield node.attr, False


def pointing(text: str) -> set[str]:
    names = {(name.strip("_"), of_function) for name, of_function in bound(ast.parse(text))}
    return {name for name, of_function in names if name in (OF_FUNCTIONS if of_function else POINTING)}


def test_names_say_what_they_hold() -> None:
    faults = {
        f"{path.relative_to(SOURCE)}: {name}"
        for path in SOURCE.rglob("*.py")
        for name in pointing(path.read_text(encoding="utf-8"))
    }
    assert faults == KNOWN


@pytest.mark.parametrize(
    ("text", "name"),
    [
        ("def told(): pass", "told"),
        ("def scores(*, about): pass", "about"),
        ("lambda each: 1", "each"),
        ("_found = 1", "found"),
        ("self.kept = 1", "kept"),
        ("for beside in range(3): pass", "beside"),
        ("for each in range(3): pass", None),
        ("scores = found", None),
    ],
)
def test_what_points_is_noticed_where_it_is_bound(text: str, name: str | None) -> None:
    assert pointing(text) == ({name} if name else set())
