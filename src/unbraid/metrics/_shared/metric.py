"""One row of the table of metrics, which stands at the end of the metric's own file."""

import inspect
import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from types import MappingProxyType
from typing import Any, Literal, TypeAlias

from unbraid.metrics._shared.chance import Chance
from unbraid.metrics._shared.inputs import Inputs, OfParts, OfShuffles
from unbraid.metrics._shared.resampling import Resampling

HALVES = Resampling()
FIFTHS = Resampling(one_in=5)  # where half of the rows tell too much less than all
PAIRS = Resampling(one_in=5, pairs=25)  # where parts show terms that fall off faster than 1 / n too large
PAIRS_AND_BIAS = replace(PAIRS, bias_checked=True, taken_off_groups=1)
EXTREMES = Resampling(times=40, in_turn=True, few_decide=True)  # where the outermost rows can decide
EXTREMES_AND_PAIRS = Resampling(times=40, in_turn=True, pairs=25, few_decide=True)
UNCHECKED_HALVES = Resampling(checked=False)
FEW_UNCHECKED_HALVES = Resampling(times=10, checked=False)  # of what is trained anew each time
Claim: TypeAlias = Literal["modularity", "compactness", "alignment", "explicitness"]
DCI_CLAIMS: Mapping[str, tuple[Claim, ...]] = {"disentanglement": ("modularity",), "completeness": ("compactness",)}
DCI_FORMULA = (
    r"D = \sum_i \rho_i \left( 1 - H_K(P_{i \cdot}) \right), \qquad P_{ij} = \frac{R_{ij}}{\sum_k R_{ik}}, "
    r"\qquad \rho_i = \frac{\sum_j R_{ij}}{\sum_{ij} R_{ij}}"
)
GRID = "resampled rows would leave gaps in the grid that it needs"


# Values beside the headlines of metrics, and which way is better; of others there is no better.
HIGHER = (
    "completeness", "mean_accuracy", "train_accuracy", "drop", "smallest_plane_angle",
    "msas_smi", "msgs_smi", "lms_spn", "msas_spn", "msgs_spn",
)  # fmt: skip
LOWER = (
    "informativeness", "nrmse", "error_rate", "error", "ordinary", "nm_auc", "mean", "norm_mean", "index_code_mi",
    "total_correlation", "leakage",
)  # fmt: skip
# Their ranges; what is not here may be any number.
SHARES = (
    "disentanglement", "completeness", "compactness", "auc", "mean_accuracy", "train_accuracy", "error_rate",
    "norm_mean", "msas_smi", "msgs_smi", "lms_spn", "msas_spn", "msgs_spn",
)  # fmt: skip
ERRORS = (  # 0 or more
    "nrmse", "ordinary", "error", "mean", "leakage", "index_code_mi", "kl", "dimension_wise_kl", "standard_error",
)  # fmt: skip
AT_MOST_1 = ("explicitness", "r2", "r2_active", "codes_from_factors")


@dataclass(frozen=True)
class Metric:
    """One row: how to call a metric, how to read its headline value, and which laws it obeys."""

    function: Callable[..., Any]
    title: str
    summary: str  # one line: what the number says
    limitations: str  # one line: what it does not see
    source: str  # paper and equation
    headline: str = "score"  # the field of the Result that is quoted
    best: float = 1.0  # the headline value of a perfect code
    higher_is_better: bool = True
    range: tuple[float, float] = (0.0, 1.0)  # of the headline; infinities where it is unbounded
    # Where an argument gives the headline another range: by the argument, such as "norm=axes".
    ranges: Mapping[str, tuple[float, float]] = field(default_factory=dict, hash=False)
    chance: Chance | None = None  # what independent noise scores; None where only shuffled rows can tell
    noise_tolerance: float = 0.05  # and 4 spreads: of noise about that, unless a note says that it cannot be read
    version: int = 1  # raised whenever the same input gives another number
    needs: str = ""  # what it needs beyond codes and factors, as a phrase for "skipped"
    stochastic: bool = False  # depends on the seed
    # Changes of the codes that leave the headline as it is; "dead" appends a constant code.
    invariant_to: frozenset[str] = frozenset({"permute", "flip", "scale", "dead"})
    tolerance: float = 1e-9  # of those invariances; for trained probes their seed spread
    aligned: bool = True  # claims axis alignment: perfect > noisy > rotated > random
    linear: bool = True  # cost grows linearly with the number of samples
    slow: bool = False  # of the standard ones: takes a tenth of a second or more for 10 000 rows of 10 codes
    standard: bool = True  # scored where none is named; others answer a rarer question, or take long
    interval: Resampling | str = UNCHECKED_HALVES  # how one is found, or why there is none
    no_interval: Callable[[Inputs], str] | None = None  # why these rows give none, "" where they do
    question: str = ""  # that it answers, a key of QUESTIONS
    # What each value says of the codes, by which `unbraid.stress` judges it; higher is better of all but the headline.
    claims: Mapping[str, tuple[Claim, ...]] = field(default_factory=dict, hash=False)
    binary: bool = False  # reads attributes of two values only
    whole_objects: bool = False  # judges every turn of an object, which images drawn at random do not hold
    of_parts: OfParts | None = None  # a quicker way to the numbers of many parts
    of_shuffles: OfShuffles | None = None  # a quicker way to the headlines of many shuffles
    # What it is given: codes and factors of one model, their blocks, codes of several models, or reconstructions.
    of: Literal["codes", "blocks", "models", "reconstructions"] = "codes"
    own: bool = False  # a function of the user's, which is given arrays that it cannot change and shares nothing
    cites: tuple[str, ...] = ()  # keys of references.bib or of `bibtex`, the paper to cite first in front
    bibtex: str = ""  # entries of papers that references.bib lacks, in its form
    formula: tuple[str, str] = ("", "")  # in LaTeX, and a sentence on its symbols

    @property
    def name(self) -> str:
        """By which it is asked for."""
        return self.title if self.own else self.function.__name__

    def direction(self, value: str) -> bool | None:
        """Whether higher is better of a value of its result; None where there is no better."""
        if value in (self.headline, "per_factor", "auc"):
            return self.higher_is_better
        if value in HIGHER or value in self.claims:
            return True
        return False if value in LOWER else None

    def range_of(self, value: str) -> tuple[float, float]:
        """Of a value of its result, with infinities where it is unbounded or not known."""
        if value in (self.headline, "ceiling"):  # a ceiling is what the headline could be at most
            return self.range
        if self.own:
            return -math.inf, math.inf
        return 0.0 if value in SHARES + ERRORS else -math.inf, 1.0 if value in SHARES + AT_MOST_1 else math.inf

    @property
    def needs_factors(self) -> bool:
        """Whether it says nothing about codes alone."""
        factors = inspect.signature(self.function).parameters.get("factors")
        return factors is None or factors.default is not None


# What people ask, in the order of docs/which-metric.md, and what to know of the answers: cards are grouped by these.
QUESTIONS: Mapping[str, tuple[str, str]] = MappingProxyType(
    {
        "own_code": ("Is each factor in one code of its own?", "Copies and rotations lower the score."),
        "one_factor": ("Is each code about one factor only?", "Most ignore factors that no code has information on."),
        "identified": ("Are the factors identified?", "One by one, or from all codes together (r2)."),
        "work": (
            "How large a model is needed to predict the factors?",
            "Ignores how well they are predicted.",
        ),
        "attributes": ("How well does each code alone predict binary attributes?", ""),
        "changes": ("Which changes of factors change which codes?", ""),
        "support": ("Do the codes take all combinations of their values?", "Needs no factors."),
        "needed": ("Is the factor's own code needed?", "Or do other codes have the same information?"),
        "told": ("Can the factors be predicted from all codes?", "Ignores axes: a rotated code can score as high."),
        "symmetry": ("What do the codes do when a cyclic factor takes a step?", ""),
        "unseen": ("Do predictions hold on combinations held out of training?", ""),
        "independent": ("How independent are the codes of each other?", "Independent is not informative."),
        "unwanted": (
            "What should not be there?",
            "How much all codes tell of factors declared unwanted: lower is better.",
        ),
        "": ("Your own", "Your own functions."),
    }
)


def by_question(rows: Mapping[str, Metric]) -> list[tuple[str, str, list[str]]]:
    """Names by the question that their metric answers, those of one's own last: question, what to know, names."""
    groups = [
        (title, explanation, [name for name, row in rows.items() if row.question == question])
        for question, (title, explanation) in QUESTIONS.items()
    ]
    return [group for group in groups if group[2]]
