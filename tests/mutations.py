"""One-token changes of the formulas of a module: where they are, and what they are.

Texts, type hints, errors, rows of tables and settings that change speed alone are left as they are.
"""

import ast
import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

# What decides how fast or in how much memory, or how closely an iteration ends: another value gives the same numbers.
SPEED = re.compile(
    r"AT_ONCE|BLOCK|CHUNK|BYTES|IN_MEMORY|IN_CACHE|CELL|PER_ROW|PER_PAIR|STORED|TABLE\b|TOLERANCE|ROUNDING|NOTHING|"
    r"SILENT|NEGLIGIBLE|SMALLEST\b|SHARPEST|MOST_|MAX_|N_SWEEPS|N_NEWTON|PATIENCE|SINGULAR|CONVERGED|JITTER|LONGEST"
)
TOLERANCE = 1e-5  # a smaller number is one

OPERATORS: dict[type[ast.AST], tuple[str, str, str]] = {  # (kind, token, other token)
    ast.Add: ("sign", "+", "-"),
    ast.Sub: ("sign", "-", "+"),
    ast.Mult: ("normaliser", "*", "/"),
    ast.Div: ("normaliser", "/", "*"),
    ast.FloorDiv: ("normaliser", "//", "*"),
    ast.Pow: ("power", "**", "*"),
    ast.Lt: ("bound", "<", "<="),
    ast.LtE: ("bound", "<=", "<"),
    ast.Gt: ("bound", ">", ">="),
    ast.GtE: ("bound", ">=", ">"),
    ast.Eq: ("bound", "==", "!="),
    ast.NotEq: ("bound", "!=", "=="),
    ast.And: ("logic", "and", "or"),
    ast.Or: ("logic", "or", "and"),
    ast.BitAnd: ("logic", "&", "|"),
    ast.BitOr: ("logic", "|", "&"),
}
NAMES = {  # of functions and methods that are called
    "max": ("max/min", "min"),
    "min": ("max/min", "max"),
    "maximum": ("max/min", "minimum"),
    "minimum": ("max/min", "maximum"),
    "argmax": ("max/min", "argmin"),
    "argmin": ("max/min", "argmax"),
    "amax": ("max/min", "amin"),
    "amin": ("max/min", "amax"),
    "ceil": ("max/min", "floor"),
    "floor": ("max/min", "ceil"),
    "log": ("log base", "log2"),
    "log2": ("log base", "log"),
    "log1p": ("log base", "log"),
    "exp": ("log base", "exp2"),
    "mean": ("normaliser", "sum"),
    "sum": ("normaliser", "mean"),
    "median": ("normaliser", "mean"),
    "std": ("ddof", "var"),
    "var": ("ddof", "std"),
    "sqrt": ("power", "positive"),
    "square": ("power", "positive"),
    "abs": ("sign", "positive"),
    "sin": ("sign", "cos"),
    "cos": ("sign", "sin"),
    "any": ("logic", "all"),
    "all": ("logic", "any"),
    "zeros": ("off by one", "ones"),
    "ones": ("off by one", "zeros"),
}
AXES, WEIGHTS = ("axis", "dim"), ("weights", "weight", "sample_weight")
HARMLESS = ("strict", "later", "copy", "compare", "repr", "frozen", "init", "exist_ok", "persistent")  # keywords
ORDERLESS = {
    "isinstance",
    "issubclass",
    "getattr",
    "hasattr",
    "maximum",
    "minimum",
    "max",
    "min",
    "zip",
    "cast",
    "dict",
}
ROWS = {"Metric", "Family", "TypeVar", "ParamSpec", "Claim", "re.compile"}


@dataclass(frozen=True)
class Mutation:
    """A change of one place in a file."""

    file: str  # relative to the root
    line: int
    column: int  # of the first changed character
    function: str  # qualified name, "" outside of functions
    kind: str
    old: str
    new: str
    text: str  # the line as it was
    start: int  # characters from the beginning of the file
    end: int

    def applied(self, source: str) -> str:
        return source[: self.start] + self.new + source[self.end :]

    @property
    def shown(self) -> str:
        return f"{self.file}:{self.line} {self.kind}: {self.old!r} to {self.new!r} in {self.text.strip()!r}"


def mutations(path: Path, root: Path) -> list[Mutation]:
    """All of a file that change its bytecode, in the order of the text."""
    source = path.read_text(encoding="utf-8")
    finder = _Finder(source, path.relative_to(root).as_posix())
    finder.visit(ast.parse(source))
    before = compile(source, str(path), "exec")
    found = sorted(set(finder.found), key=lambda each: (each.start, each.end, each.new))
    return [each for each in found if _differs(each.applied(source), path, before)]


def _differs(source: str, path: Path, before: object) -> bool:
    try:
        return compile(source, str(path), "exec") != before
    except (SyntaxError, ValueError):
        return False


class _Finder(ast.NodeVisitor):
    """Walks what computes, and notes what may be changed."""

    def __init__(self, source: str, file: str) -> None:
        self.source, self.file, self.found, self.inside = source, file, list[Mutation](), list[str]()
        self.lines = source.splitlines(keepends=True)
        self.starts = [0]
        for line in self.lines:
            self.starts.append(self.starts[-1] + len(line))

    def place(self, line: int, column: int) -> int:
        """`column` counts bytes, as `ast` does."""
        return self.starts[line - 1] + len(self.lines[line - 1].encode()[:column].decode())

    def start(self, node: ast.expr) -> int:
        return self.place(node.lineno, node.col_offset)

    def end(self, node: ast.expr) -> int:
        assert node.end_lineno is not None
        assert node.end_col_offset is not None
        return self.place(node.end_lineno, node.end_col_offset)

    def note(self, kind: str, start: int, end: int, new: str) -> None:
        line = next(number for number, first in enumerate(self.starts) if first > start)
        text = self.lines[line - 1].rstrip("\n")
        if not SPEED.search(text):
            place, old = start - self.starts[line - 1], self.source[start:end]
            name = ".".join(self.inside)
            self.found.append(Mutation(self.file, line, place, name, kind, old, new, text, start, end))

    def note_between(self, kind: str, left: ast.expr, right: ast.expr, old: str, new: str) -> None:
        """The operator between two operands, whatever brackets and breaks of lines stand beside it."""
        first, last = self.end(left), self.start(right)
        between = re.sub(r"#.*", lambda comment: " " * len(comment[0]), self.source[first:last])
        if (at := between.find(old)) >= 0:
            self.note(kind, first + at, first + at + len(old), new)

    # What is not looked into.

    def visit_Raise(self, node: ast.Raise) -> None: ...
    def visit_Assert(self, node: ast.Assert) -> None: ...
    def visit_JoinedStr(self, node: ast.JoinedStr) -> None: ...
    def visit_Import(self, node: ast.Import) -> None: ...
    def visit_ImportFrom(self, node: ast.ImportFrom) -> None: ...

    def visit_AnnAssign(self, node: ast.AnnAssign) -> None:
        if node.value is not None:
            self.visit(node.value)

    def visit_If(self, node: ast.If) -> None:
        if "TYPE_CHECKING" not in ast.unparse(node.test):
            self.generic_visit(node)

    def visit_ClassDef(self, node: ast.ClassDef) -> None:
        self._within(node.name, node.body)

    def visit_FunctionDef(self, node: ast.FunctionDef) -> None:
        self.inside.append(node.name)
        for default in (*node.args.defaults, *filter(None, node.args.kw_defaults)):
            self._default(default)
        self.inside.pop()
        self._within(node.name, node.body)

    def _within(self, name: str, body: list[ast.stmt]) -> None:
        self.inside.append(name)
        for statement in body:
            self.visit(statement)
        self.inside.pop()

    def _default(self, node: ast.expr) -> None:
        if isinstance(node, ast.Constant) and isinstance(node.value, bool):
            self.note("default", self.start(node), self.end(node), str(not node.value))
        elif isinstance(node, ast.Constant) and isinstance(node.value, int | float):
            self.note("default", self.start(node), self.end(node), _another(node.value))

    # What is changed.

    def visit_Assign(self, node: ast.Assign) -> None:
        alone = isinstance(node.value, ast.Constant) and not self.inside
        self._default(node.value) if alone else self.generic_visit(node)

    def visit_BinOp(self, node: ast.BinOp) -> None:
        texts = (ast.Constant, ast.JoinedStr, ast.List, ast.Tuple)
        joined = any(
            isinstance(each, texts) and not isinstance(getattr(each, "value", ""), int | float | complex)
            for each in (node.left, node.right)
        )
        if type(node.op) in OPERATORS and not joined:
            kind, old, new = OPERATORS[type(node.op)]
            self.note_between(kind, node.left, node.right, old, new)
        self.generic_visit(node)

    def visit_AugAssign(self, node: ast.AugAssign) -> None:
        if type(node.op) in OPERATORS:
            kind, old, new = OPERATORS[type(node.op)]
            self.note_between(kind, node.target, node.value, f"{old}=", f"{new}=")
        self.generic_visit(node)

    def visit_BoolOp(self, node: ast.BoolOp) -> None:
        kind, old, new = OPERATORS[type(node.op)]
        for left, right in zip(node.values, node.values[1:], strict=False):
            self.note_between(kind, left, right, old, new)
        self.generic_visit(node)

    def visit_Compare(self, node: ast.Compare) -> None:
        for left, operator, right in zip([node.left, *node.comparators], node.ops, node.comparators, strict=False):
            if type(operator) in OPERATORS:
                kind, old, new = OPERATORS[type(operator)]
                self.note_between(kind, left, right, old, new)
        self.generic_visit(node)

    def visit_UnaryOp(self, node: ast.UnaryOp) -> None:
        token = {ast.USub: ("sign", "-", "+"), ast.Not: ("logic", "not ", ""), ast.Invert: ("logic", "~", "")}
        index = isinstance(node.operand, ast.Constant)  # -1: off by one, below
        if type(node.op) in token and not index:
            kind, old, new = token[type(node.op)]
            self.note(kind, self.start(node), self.start(node) + len(old), new)
        self.generic_visit(node)

    def visit_Constant(self, node: ast.Constant) -> None:
        value = node.value
        if isinstance(value, bool) or not isinstance(value, int | float) or 0 < value < TOLERANCE or value >= 1e9:
            return
        self.note("off by one", self.start(node), self.end(node), _another(value))

    def visit_Call(self, node: ast.Call) -> None:
        name, called = ast.unparse(node.func), node.func
        if name in ROWS:
            return
        last = name.rpartition(".")[2]
        if last in NAMES and (isinstance(called, ast.Attribute) or last in ("max", "min", "any", "all", "sum")):
            kind, new = NAMES[last]
            if not (isinstance(called, ast.Name) and last == "sum"):  # there is no built-in mean
                self.note(kind, self.end(called) - len(last), self.end(called), new)
        self._keywords(node.keywords)
        first = node.args[:2]
        if len(first) == 2 and last not in ORDERLESS and not last.startswith(("check", "_check")):
            self._swap(*first)
        for each in (*node.args, *(keyword.value for keyword in node.keywords if keyword.arg not in AXES), called):
            self.visit(each)

    def _keywords(self, keywords: list[ast.keyword]) -> None:
        for keyword in keywords:
            if keyword.arg in HARMLESS:
                continue
            value, start, end = keyword.value, self.start(keyword.value), self.end(keyword.value)
            literal = value.value if isinstance(value, ast.Constant) else None
            if keyword.arg in AXES and (number := ast.unparse(value)) in ("0", "1", "-1"):
                self.note("axis", start, end, {"0": "1", "1": "0", "-1": "0"}[number])
            elif keyword.arg in WEIGHTS and literal is None and ast.unparse(value) != "None":
                self.note("dropped weight", start, end, "None")
            elif isinstance(literal, bool):
                self.note("ddof" if keyword.arg == "bias" else "default", start, end, str(not literal))

    def _swap(self, one: ast.expr, other: ast.expr) -> None:
        plain: Callable[[ast.expr], bool] = lambda each: not isinstance(each, ast.Starred | ast.JoinedStr | ast.Lambda)  # noqa: E731
        numbers = isinstance(one, ast.Constant) and isinstance(one.value, str)
        if not (plain(one) and plain(other)) or numbers or ast.dump(one) == ast.dump(other):
            return
        start, end = self.start(one), self.end(other)
        texts = [self.source[self.start(each) : self.end(each)] for each in (one, other)]
        between = self.source[self.end(one) : self.start(other)]
        self.note("swapped argument", start, end, texts[1] + between + texts[0])


def _another(value: int | float) -> str:
    """One more; of a number that is not whole, twice as much."""
    return repr(value + 1 if value == int(value) else 2 * value)


def sources(root: Path, rooms: tuple[str, ...]) -> Iterator[Path]:
    """The modules of the rooms, in order."""
    for room in rooms:
        place = root / room
        yield from [place] if place.is_file() else sorted(place.rglob("*.py"))
