"""What `diagnose` says: of each factor which codes hold it and how, of each code which factors it is about."""

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from typing import Any

from unbraid.base.counted import counted
from unbraid.base.types import DataFrame
from unbraid.files.score_file import CodeKind, FactorKind, Mixture, SavedDiagnosis

SURE, LIKELY = 0.9, 0.7  # shares of resamples: from which on no "probably" is said, and below which "unclear"
MOST_LISTED = 6  # codes or factors in one line
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
            codes; "spread", it takes several codes; "absent", no better than shuffled labels; or "unclear", the rows
            are too few to say which of these.
        codes: columns of the codes that hold it; of copies all of them; empty where it is absent or unclear.
        strength: held-out R² of numbers (of cosine and sine together of angles), balanced accuracy of classes, by all
            codes. Higher is better, up to 1.
        chance: the same without codes: 0, or 1 / n_classes.
        p: of shuffled labels being predicted as well.
        share: of the strength above chance, what the best code holds alone; 0 to 1.
        stability: share of resamples of the rows in which the same is said; 0 to 1.
        mixture: of a "spread" factor "linear", where a linear regression on these codes does nearly as well as any
            other; else "curved". "" of other kinds.
        others: factors that a shared code is about as well.
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
    others: tuple[str, ...] = ()
    measure: str = "R²"
    detail: str = ""
    unwanted: bool = False
    text: str = ""


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
        width = min(24, max(map(len, self.factors), default=0))
        head = f"{self.n_samples:,} samples, {counted(self.n_codes, 'code')}, {counted(len(self.factors), 'factor')}"
        lines = [f"{_cut(name, width):<{width}}  {each.text}" for name, each in self.factors.items()]
        if of_codes := self.codes_text():
            lines.append(f"{'codes':<{width}}  {of_codes}")
        return "\n".join(
            [head, "", *lines, *(f"Note: {note}." for note in self.notes), f"In short: {self.in_short()}."]
        )

    def codes_text(self) -> str:
        """The codes that are dead, and those that are about several factors, or about none, in words."""
        by_kind = {
            kind: [code for code, each in self.codes.items() if each.kind == kind]
            for kind in ("dead", "none of these factors")
        }
        parts = [
            f"{self._listed(codes)} {'is' if len(codes) == 1 else 'are'} {words}"
            for (_, codes), words in zip(by_kind.items(), ("dead", "about none of these factors"), strict=True)
            if codes
        ]
        mixed = [(code, each) for code, each in self.codes.items() if each.kind == "several factors"]
        parts += [f"{self._listed([code])} is about {joined_words(list(each.factors))}" for code, each in mixed[:3]]
        if len(mixed) > 3:
            parts.append(f"so are {len(mixed) - 3} more about several")
        return "; ".join(parts)

    def in_short(self) -> str:
        """One sentence: how many factors have a code of their own, and what became of the others."""
        wanted = [each for each in self.factors.values() if not each.unwanted]
        total = len(wanted)
        own = sum(each.kind == "own code" for each in wanted)
        parts = [f"{own} of {counted(total, 'factor')} {'has' if own == 1 else 'have'} a code of {_its(own)} own"]
        for kind, words in IN_SHORT.items():
            count = sum(each.kind == kind for each in wanted)
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
        wanted = [each.kind for each in self.factors.values() if not each.unwanted]
        missing = wanted.count("absent")
        return f"{wanted.count('own code')} of {len(wanted)} alone" + (f", {missing} missing" if missing else "")

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

    def _names(self, codes: Sequence[int]) -> str:
        return " ".join(self.code_names[code] if self.code_names else str(code) for code in codes)

    def _listed(self, codes: Sequence[int]) -> str:
        return code_words(codes, self.code_names)


def diagnosis_of(saved: SavedDiagnosis) -> Diagnosis:
    """What `Diagnosis.to_dict` wrote, read again."""
    factors = {
        name: FactorDiagnosis(**{**dict(each), "codes": tuple(each.codes), "others": tuple(each.others)})
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


def _cut(name: str, width: int) -> str:
    return name if len(name) <= width else f"{name[: width - 1]}…"


def _its(count: int) -> str:
    return "its" if count == 1 else "their"


def _plain(record: FactorDiagnosis | CodeDiagnosis) -> dict[str, Any]:
    return {name: list(value) if isinstance(value, tuple) else value for name, value in asdict(record).items()}
