"""Whom to cite: the papers behind every metric, family and dataset.

The entries themselves are in references.bib, in the form in which they are printed: fields in braces, each on a line
of its own, a blank line between entries.
"""

import re
from collections.abc import Mapping
from dataclasses import dataclass
from importlib.resources import files
from types import MappingProxyType

ITSELF = "unbraid"


@dataclass(frozen=True)
class Reference:
    """One entry of a bibliography. Fields are as BibTeX wants them; braces keep capitals."""

    kind: str  # article, inproceedings, misc, phdthesis, techreport or software
    fields: Mapping[str, str]  # author, title, year, and where it appeared: booktitle or journal, volume, pages, ...
    bibtex: str  # the entry as text, without a line end

    def __str__(self) -> str:
        """One line for people: authors, year, title, where."""
        names = [_first_name_first(name) for name in self.fields["author"].split(" and ")]
        authors = names[0] if len(names) == 1 else f"{', '.join(names[:-1])} and {names[-1]}"
        where = ", ".join(self.fields[name] for name in _PLACE_FIELDS if name in self.fields)
        return _plain(f"{authors} ({self.fields['year']}). {self.fields['title']}. {where}.")


_PLACE_FIELDS = ("booktitle", "journal", "school", "institution", "volume", "number", "pages", "eprint", "howpublished")


def _first_name_first(name: str) -> str:
    family, comma, first_name = name.partition(", ")
    return f"{first_name} {family}" if comma else family


def _plain(text: str) -> str:
    for written, replacement in ((r"$\beta$", "β"), (r"\url", ""), ("--", "–")):
        text = text.replace(written, replacement)
    return re.sub(r"[{}]", "", text)


def read_bibliography(text: str) -> dict[str, Reference]:
    """The entries of a bibliography in the form of references.bib, by key."""
    entries = re.findall(r"^@(\w+)\{(\w+),\n((?:  .*\n)+)\}$", text, flags=re.MULTILINE)
    return {
        key: Reference(
            kind,
            MappingProxyType(dict(re.findall(r"^  (\w+) *= \{(.*)\},$", fields, flags=re.MULTILINE))),
            f"@{kind}{{{key},\n{fields}}}",
        )
        for kind, key, fields in entries
    }


REFERENCES: Mapping[str, Reference] = MappingProxyType(
    read_bibliography((files("unbraid.base") / "references.bib").read_text(encoding="utf-8"))
)
