"""Help under headings, and the one line that answers a command or a value that is unknown, with what was meant."""

import re
from collections import Counter
from collections.abc import Mapping
from typing import Any

from typer.core import TyperCommand, TyperGroup

from unbraid.base.suggest import suggestion
from unbraid.cli._progress import interruptible

# What other programs call them.
WORDS: Mapping[str, tuple[str, ...]] = {
    **dict.fromkeys(("learn", "new"), ("train",)),
    **dict.fromkeys(("resume", "restart"), ("continue", "run")),
    **dict.fromkeys(("start", "execute", "launch"), ("run", "train")),
    **dict.fromkeys(("eval", "evaluate", "measure", "test", "benchmark"), ("score",)),
    **dict.fromkeys(("plot", "draw", "figures"), ("figure",)),
    **dict.fromkeys(("serve", "ui", "gui", "web", "dashboard", "browse", "app", "view", "visualize"), ("report",)),
    **dict.fromkeys(("select", "best", "top", "udr"), ("rank",)),
    **dict.fromkeys(("models", "methods"), ("families",)),
    **dict.fromkeys(("datasets", "dataset"), ("data",)),
    **dict.fromkeys(("sweep", "grid", "experiment"), ("study",)),
    **dict.fromkeys(("convert", "onnx", "table", "csv"), ("export",)),
    **dict.fromkeys(("html", "page"), ("report",)),
    **dict.fromkeys(("bibtex", "citation"), ("cite",)),
    **dict.fromkeys(("diff", "significance", "ttest"), ("compare",)),
    **dict.fromkeys(("download", "fetch"), ("get", "data")),
    **dict.fromkeys(("ls",), ("list", "data")),
    **dict.fromkeys(("describe", "details"), ("info",)),
}
# Of each group, what is written otherwise: one verb takes files, runs and studies, and what is drawn is a figure.
ELSEWHERE: Mapping[str, Mapping[str, str]] = {
    "unbraid": {
        **dict.fromkeys(("traverse", "traversal", "traversals"), "unbraid figure traversals RUN --out F.png"),
        **dict.fromkeys(("generate", "sample", "samples", "decode"), "unbraid figure samples RUN --out F.png"),
        **dict.fromkeys(("merge", "agreement", "generalisation", "status"), "unbraid study {}"),
    },
    "study": dict.fromkeys(("rank", "compare", "report", "figure", "export"), "unbraid {} STUDY"),
}


class Commands(TyperGroup):
    """A group of commands that knows what was meant by another."""

    def __init__(self, **attributes: Any) -> None:
        super().__init__(**attributes)
        for command in self.commands.values():
            if command.help:  # "\b" tells Click not to wrap: half of an example is not a command
                command.help = re.sub(r"\n\n(?=  )", "\n\n\b\n", command.help)

    def format_commands(self, ctx: Any, formatter: Any) -> None:
        """Under the heading that each command names, in the order of their first commands."""
        sections: dict[str, list[tuple[str, str]]] = {}
        width = formatter.width - 6 - max(len(name) for name in self.list_commands(ctx))
        for name in self.list_commands(ctx):
            command: Any = self.get_command(ctx, name)
            sections.setdefault(_heading(command, "Commands"), []).append((name, command.get_short_help_str(width)))
        _write(formatter, sections)

    def invoke(self, ctx: Any) -> Any:
        with interruptible("no file was left half-written", "interrupted"):
            return super().invoke(ctx)

    def resolve_command(self, ctx: Any, args: list[str]) -> Any:
        name = args[0]
        if ctx.resilient_parsing or name.startswith("-") or self.get_command(ctx, name) is not None:
            resolved = super().resolve_command(ctx, args)
            if not ctx.resilient_parsing and isinstance(resolved[1], TyperCommand):
                _check_once(resolved[1], ctx, resolved[2])
            return resolved
        if other := ELSEWHERE.get(self.name or "", {}).get(name):
            raise ValueError(f"no command {name!r} here; write {other.format(name)}")
        raise ValueError(f"no command {name!r}; {suggestion(name, self.list_commands(ctx), words=WORDS)}")


class UnderHeadings(TyperCommand):
    """A command of many options, each under the heading that it names; those that name none come first."""

    def format_options(self, ctx: Any, formatter: Any) -> None:
        sections: dict[str, list[tuple[str, str]]] = {"Arguments": [], "Options": []}
        for parameter in self.get_params(ctx):
            if (record := parameter.get_help_record(ctx)) is not None:
                plain = "Arguments" if parameter.param_type_name == "argument" else "Options"
                sections.setdefault(_heading(parameter, plain), []).append(record)
        _write(formatter, sections)


def _check_once(command: TyperCommand, ctx: Any, args: list[str]) -> None:
    """
    Raises:
        ValueError: an option that takes one value is given twice, of which Click would take the last.
    """
    parsing: Any = command.context_class(command, parent=ctx, **command.context_settings)
    counts: Counter[Any] = Counter(command.make_parser(parsing).parse_args(args=list(args))[2])
    for option, times in counts.items():
        if times > 1 and option.param_type_name == "option" and not (option.multiple or option.is_flag):
            raise ValueError(f"{option.opts[0]} takes one value; it is given {times} times")


def _heading(item: Any, plain: str) -> str:
    heading = getattr(item, "rich_help_panel", None)
    return heading if isinstance(heading, str) else plain


def _write(formatter: Any, sections: Mapping[str, list[tuple[str, str]]]) -> None:
    for heading, rows in sections.items():
        with formatter.section(heading):
            formatter.write_dl(rows)
