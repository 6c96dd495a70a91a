"""What the pages share: plain text as Markdown, lists of facts, citations, and links that lead within the site."""

import posixpath
import re
from collections.abc import Iterable, Mapping
from pathlib import Path

from unbraid.cli.cite_command import bibtex, entries, papers_of

ROOT = Path(__file__).parents[2]
# Files of the repository that are pages too, and where.
OUTSIDE = {
    "CONTRIBUTING.md": "contributing", "CHANGELOG.md": "changelog", "SECURITY.md": "security",
    "RELEASING.md": "releasing", "evidence/benchmarks/README.md": "benchmarks",
}  # fmt: skip


def escaped(text: str) -> str:
    """Plain text in which `code` stays code and nothing else is read as Markdown."""
    pieces = re.split(r"(`[^`]*`)", text)
    return "".join(piece if piece.startswith("`") else re.sub(r"([*_<\[\]\\#|$])", r"\\\1", piece) for piece in pieces)


def facts(known: Mapping[str, str]) -> str:
    """A list of names and values."""
    return "\n".join(f":{name}: {value}" for name, value in known.items())


def table(head: str, ruler: str, rows: Iterable[Iterable[str]]) -> str:
    """A Markdown table; the ruler holds l or r for each column."""
    rulers = {"l": "---", "r": "---:"}
    lines = [f"| {head} |", f"| {' | '.join(rulers[side] for side in ruler)} |"]
    return "\n".join([*lines, *(f"| {' | '.join(row)} |" for row in rows)])


def row_link(name: str) -> str:
    """The name of a row, linked to its page on the site; where there are no such pages, to this place."""
    return f'<a id="{name}"></a>[`{name}`](#{name})'


def citation(name: str) -> str:
    """Whom to cite for a metric, family or dataset."""
    known = entries()
    lines = "\n".join(f"- {escaped(str(known[key]))}" for key in papers_of(name))
    return (
        f"## Cite\n\n{lines}\n\n<details><summary>BibTeX, as <code>unbraid cite {name}</code> prints it</summary>\n\n"
        f"```bibtex\n{bibtex(name)}\n```\n\n</details>"
    )


def formula(latex: str, where: str) -> str:
    """A formula with what its symbols mean."""
    return f"```{{math}}\n{latex}\n```\n\n{{.where}}\n{where}"


def relinked(text: str, place: str, rows: Mapping[str, Iterable[str]]) -> str:
    """The text with links between files of the repository as links between pages.

    Args:
        text: Markdown.
        place: path of its file in the repository.
        rows: names that have pages of their own, by the folder of these pages; `metrics.md#mig` becomes such a page.
    """
    page = OUTSIDE.get(place, place.removeprefix("docs/").removesuffix(".md"))

    def here(target: str) -> str:
        return posixpath.relpath(target, posixpath.dirname(page) or ".")

    def link(found: re.Match[str]) -> str:
        bang, words, target = found.groups()
        path, _, anchor = target.partition("#")
        full = posixpath.normpath(posixpath.join(posixpath.dirname(place), path)) if path else place
        folder = full.removeprefix("docs/").removesuffix(".md")
        if anchor in rows.get(folder, ()):
            return f"{bang}[{words}]({here(f'{folder}/{anchor}')}.md)"
        if not path or ":" in path or not (ROOT / full).exists():
            return found[0]
        if full in OUTSIDE:
            return f"[{words}]({here(OUTSIDE[full])}.md{'#' * bool(anchor)}{anchor})"
        if full.startswith("docs/"):
            return f"{bang}[{words}]({here(full.removeprefix('docs/'))}{'#' * bool(anchor)}{anchor})"
        return words  # a file that the site does not show

    return re.sub(r"(!?)\[((?:[^\[\]]|\[[^\]]*\])*)\]\(([^()\s]+)\)", link, text)
