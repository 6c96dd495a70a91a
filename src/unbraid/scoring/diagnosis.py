"""What `diagnose` says: of each factor which codes hold it and how, of each code which factors it is about."""

import textwrap
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from typing import Any

from unbraid.base.counted import counted
from unbraid.base.types import DataFrame
from unbraid.files.score_file import CodeKind, FactorKind, Mixture, SavedDiagnosis

SURE, LIKELY = 0.9, 0.7  # shares of resamples: from which on no "probably" is said, and below which "unclear"
MOST_LISTED = 6  # codes or factors in one list
WIDTH, LONGEST = 100, 24  # letters of a line, and of the name of a factor in it
# What a factor is called in the line that sums up, by its kind.
IN_SHORT: Mapping[str, str] = {
    "own code": "has a code of its own",
    "shared code": "shares a code",
    "copied": "is copied",
    "circle": "is a circle",
    "spread": "is mixed",
    "absent": "is missing",
    "unclear": "is unclear",
}


@dataclass(frozen=True)
class FactorDiagnosis:
    """Which codes hold one factor, and how.

    Attributes:
        kind: "own code", one code holds nearly all that all codes tell of it; "shared code", likewise, but that code is
            about another factor as well; "copied", several codes hold it, each alone; "circle", a cyclic factor on two
            codes; "spread", it takes several codes; "absent", no better than shuffled labels, or hardly better; or
            "unclear", the rows are too few to say which of these.
        codes: columns of the codes that hold it; of copies all of them; empty where it is absent or unclear.
        strength: held-out R² of numbers (of cosine and sine together of angles), balanced accuracy of classes, by all
            codes. Higher is better, up to 1.
        chance: the same without codes: 0, or 1 / n_classes.
        p: of shuffled labels being predicted as well.
        share: of the strength above chance, what the best code holds alone; 0 to 1. Of a "spread" factor, the best of
            `codes`.
        stability: share of resamples of the rows in which the same is said; 0 to 1.
        mixture: of a "spread" factor "linear", where a linear regression on these codes does nearly as well as any
            other; else "curved". "" of other kinds.
        shared_with: factors that a shared code is about as well.
        measure: "R²" or "accuracy".
        detail: what else there is to say, such as "wound twice".
        unwanted: whether codes should not tell of it.
        text: a line of words.
    """

    kind: FactorKind
    codes: tuple[int, ...] = ()
    strength: float = 0.0
    chance: float = 0.0
    p: float = 1.0
    share: float = 0.0
    stability: float = 1.0
    mixture: Mixture = ""
    shared_with: tuple[str, ...] = ()
    measure: str = "R²"
    detail: str = ""
    unwanted: bool = False
    text: str = ""

    def columns(self, code_names: Sequence[str] = ()) -> tuple[str, str, str]:
        """Where it is, how, and how strong, in words."""
        strength = f"{self.measure} {_number(self.strength)}"
        strength += f" (chance {_number(self.chance)})" if self.measure == "accuracy" else ""
        if self.kind == "absent":
            p = "< .001" if self.p < 0.001 else f"= {_number(self.p)}"
            if self.detail == "hardly":
                return "hardly in the codes", "though better than shuffled", strength
            return "not in the codes", self.detail or "no better than shuffled", f"p {p}"
        if self.kind == "unclear":
            codes, _, either = self.detail.rpartition(": ")
            return f"unclear, {codes}" if codes else "unclear", either, strength if self.strength else ""
        percent = f"{100 * self.share:.0f} %"
        how = {
            "own code": f"{percent} of what all codes tell",
            "shared code": f"which is about {joined_words(self.shared_with)} too",
            "copied": "copies of each other",
            "circle": "as a circle; neither alone",
            "spread": f"{self.mixture} mixture; best {percent}",
        }[self.kind]
        where = where_words(self.kind, self.codes, code_names)
        where = f"probably {where}" if self.stability < SURE else where
        return where, f"{how}, {self.detail}" if self.detail else how, strength


@dataclass(frozen=True)
class CodeDiagnosis:
    """Which factors one code is about.

    Attributes:
        kind: "dead", it does not vary or has no information; "one factor"; "several factors"; or "none of these
            factors", it varies and tells of none.
        factors: their names, with the share of what all codes tell of each that this code holds alone, 0 to 1.
    """

    kind: CodeKind
    factors: Mapping[str, float] = field(default_factory=dict)


@dataclass(frozen=True)
class Diagnosis:
    """Which factors are in the codes, where, and what is wrong.

    Attributes:
        factors: by name, in the order of the factors.
        codes: by column.
        n_samples, n_codes: of the data.
        code_names: empty where codes have none.
        notes: what is said of the data once: factors that follow from each other, rows that were drawn.
    """

    factors: Mapping[str, FactorDiagnosis]
    codes: Mapping[int, CodeDiagnosis]
    n_samples: int
    n_codes: int
    code_names: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()

    def __str__(self) -> str:
        head = f"{self.n_samples:,} samples, {counted(self.n_codes, 'code')}, {counted(len(self.factors), 'factor')}"
        rows = [(_cut(name), *each.columns(self.code_names)) for name, each in self.factors.items()]
        widths = [max((len(row[column]) for row in rows), default=0) for column in range(3)]
        widths[0] = max(widths[0], len("codes"))
        lines = ["  ".join([*map(str.ljust, row, widths), row[3]]).rstrip() for row in rows]
        first = widths[0] + 2
        if of_codes := self.codes_text():
            lines += wrapped(f"{'codes':<{first}}{of_codes}", first)
        notes = [line for note in self.notes for line in wrapped(f"note: {note}", 6)]
        return "\n".join([head, "", *lines, *notes, *wrapped(f"In short: {self.in_short()}.", 4)])

    def codes_text(self) -> str:
        """The codes that are dead, those that are about none of the factors, and those that are about several."""
        parts = []
        for kind, words in (("dead", "dead"), ("none of these factors", "about none of these factors")):
            codes = [code for code, each in self.codes.items() if each.kind == kind]
            if codes:
                parts.append(f"{self._listed(codes)} {'is' if len(codes) == 1 else 'are'} {words}")
        mixed = [(code, each) for code, each in self.codes.items() if each.kind == "several factors"]
        shown = mixed if len(mixed) < 4 else mixed[:2]
        parts += [f"{self._listed([code])} is about {joined_words(list(each.factors))}" for code, each in shown]
        if len(mixed) > len(shown):
            parts.append(f"{len(mixed) - len(shown)} more are about several factors")
        return "; ".join(parts)

    def in_short(self) -> str:
        """One sentence: how many factors have a code of their own, and what became of the others."""
        judged = [each for each in self.factors.values() if not each.unwanted]
        total = len(judged)
        own = sum(each.kind == "own code" for each in judged)
        parts = [f"{own} of {counted(total, 'factor')} {'has' if own == 1 else 'have'} a code of {_its(own)} own"]
        for kind, words in IN_SHORT.items():
            count = sum(each.kind == kind for each in judged)
            if count and kind != "own code":
                verb, _, rest = words.partition(" ")
                parts.append(f"{count} {verb if count == 1 else {'is': 'are', 'shares': 'share'}[verb]} {rest}")
        unwanted = [name for name, each in self.factors.items() if each.unwanted and each.kind != "absent"]
        if unwanted:
            parts.append(f"the codes tell of the unwanted {joined_words(unwanted)}")
        return ", ".join(parts)

    @property
    def column(self) -> str:
        """The answer in a cell of a table: "2 of 6 alone, 1 missing"."""
        judged = [each.kind for each in self.factors.values() if not each.unwanted]
        missing = judged.count("absent")
        return f"{judged.count('own code')} of {len(judged)} alone" + (f", {missing} missing" if missing else "")

    def to_frame(self) -> DataFrame:
        """A row per factor as a pandas DataFrame: factor, kind, codes and the other attributes."""
        import pandas as pd

        rows = [{"factor": name, **_plain(each)} for name, each in self.factors.items()]
        return pd.DataFrame([{**row, "codes": self._names(row["codes"])} for row in rows])

    def to_dict(self) -> dict[str, Any]:
        """What the JSON of a score card has: `factors` by name, `codes` by column, `in_short` and `notes`."""
        return {
            "in_short": self.in_short(),
            "n_samples": self.n_samples,
            "n_codes": self.n_codes,
            "code_names": list(self.code_names),
            "factors": {name: _plain(each) for name, each in self.factors.items()},
            "codes": {str(code): _plain(each) for code, each in self.codes.items()},
            "notes": list(self.notes),
        }

    def _listed(self, codes: Sequence[int]) -> str:
        return joined_words([self.code_names[code] if self.code_names else str(code) for code in codes])

    def _names(self, codes: Sequence[int]) -> str:
        return " ".join(self.code_names[code] if self.code_names else str(code) for code in codes)


def diagnosis_of(saved: SavedDiagnosis) -> Diagnosis:
    """What `Diagnosis.to_dict` wrote, read again."""
    factors = {
        name: FactorDiagnosis(**{**dict(each), "codes": tuple(each.codes), "shared_with": tuple(each.shared_with)})
        for name, each in saved.factors.items()
    }
    codes = {int(code): CodeDiagnosis(each.kind, dict(each.factors)) for code, each in saved.codes.items()}
    return Diagnosis(factors, codes, saved.n_samples, saved.n_codes, tuple(saved.code_names), tuple(saved.notes))


def code_words(codes: Sequence[int], names: Sequence[str] = ()) -> str:
    """ "code 3", "codes 1 and 4", or the names of the codes."""
    words = [names[code] if names else str(code) for code in codes]
    listed = joined_words(words)
    return listed if names else f"code{'s' if len(codes) > 1 else ''} {listed}"


def joined_words(words: Sequence[str]) -> str:
    """ "a, b and c"; of many the first, and how many more."""
    shown = list(words[:MOST_LISTED])
    if len(words) > MOST_LISTED:
        return f"{', '.join(shown)} and {len(words) - MOST_LISTED} more"
    return " and ".join([", ".join(shown[:-1]), shown[-1]]) if len(shown) > 1 else "".join(shown)


def where_words(kind: FactorKind, codes: Sequence[int], code_names: Sequence[str]) -> str:
    """In which codes a factor is, in words."""
    words = code_words(codes, code_names)
    by_kind = {"copied": f"{words}, each alone", "circle": f"{words} together", "spread": f"spread over {words}"}
    return by_kind.get(kind, f"{words} alone")


def either_words(alternatives: Sequence[tuple[FactorKind, list[int]]], code_names: Sequence[str]) -> str:
    """Two statements between which the rows do not decide."""
    kinds = {"own code": "alone", "copied": "copies", "circle": "a circle", "spread": "spread"}
    if len({tuple(codes) for _, codes in alternatives}) == 1:
        words = " or ".join(dict.fromkeys(kinds[kind] for kind, _ in alternatives))
        return f"{code_words(alternatives[0][1], code_names)}: {words}"
    return " or ".join(where_words(kind, codes, code_names) for kind, codes in alternatives)


def wrapped(text: str, indent: int) -> list[str]:
    """Lines of at most 100 letters; all but the first are indented."""
    return textwrap.wrap(text, WIDTH, subsequent_indent=" " * indent, break_long_words=False, break_on_hyphens=False)


def _cut(name: str) -> str:
    return name if len(name) <= LONGEST else f"{name[: LONGEST - 1]}…"


def _number(value: float) -> str:
    return f"{value:.2f}".replace("0.", ".", 1) if value < 1 else f"{value:.2f}"


def _its(count: int) -> str:
    return "its" if count == 1 else "their"


def _plain(record: FactorDiagnosis | CodeDiagnosis) -> dict[str, Any]:
    return {name: list(value) if isinstance(value, tuple) else value for name, value in asdict(record).items()}
