"""What a reader should know before trusting a number of binned codes: notes that several metrics share."""

import numpy as np

from unbraid.base.counted import counted
from unbraid.metrics._shared.bins import Binning
from unbraid.metrics._shared.chance import unreadable
from unbraid.metrics._shared.information import factor_entropy, mutual_information, rows_in_bins
from unbraid.metrics._shared.inputs import Inputs, Levels, as_levels
from unbraid.metrics._shared.sharing import shared

CROWDED = 0.9  # share of the rows in one bin from which on the others hardly count
NAMED = 5  # codes in one note
DEPENDENT = 0.05  # share of a factor's entropy that another tells, beyond what luck does


def notes_on_information(inputs: Inputs, levels: Levels, bins: int, binning: Binning) -> tuple[str, ...]:
    """How factors are read as levels, and what to know of the information of codes in bins about these."""
    return *levels.notes, *notes_on_bins(inputs, bins, binning), *notes_on_dependence(levels)


@shared
def notes_on_bins(inputs: Inputs, bins: int, binning: Binning) -> tuple[str, ...]:
    """Rows too few for the tables of bins and levels, and codes that lie nearly all in one of their bins."""
    by_bin, sizes = rows_in_bins(inputs, bins, binning), as_levels(inputs).sizes
    occupied = max(int(np.count_nonzero(counts)) for counts in by_bin)
    notes = []
    if inputs.n_samples < occupied * max(sizes):
        notes.append(unreadable(f"{inputs.n_samples} rows for tables of {occupied} bins and {max(sizes)} levels"))
    crowded = [code for code, counts in enumerate(by_bin) if _crowded(inputs, code, int(counts.max()), bins)]
    if crowded:
        most = min(int(by_bin[code].max()) for code in crowded)
        more = f" and {len(crowded) - NAMED} more" if len(crowded) > NAMED else ""
        names = ", ".join(map(str, crowded[:NAMED]))
        one = f"code {names}: {most} of {inputs.n_samples} rows"
        several = f"codes {names}{more}: {most} of {inputs.n_samples} rows or more"
        notes.append(
            f"{several if len(crowded) > 1 else one} are in one bin, because of outliers; "
            "binning='mass' cuts bins of equal mass"
        )
    return tuple(notes)


def _crowded(inputs: Inputs, code: int, most: int, bins: int) -> bool:
    """Whether outliers put nearly all rows of a code into one bin; rows of one value share a bin however it is cut."""
    if not CROWDED * inputs.n_samples <= most < inputs.n_samples:
        return False
    _, counts = np.unique(inputs.code(code), return_counts=True)
    return len(counts) > bins and int(counts.max()) < CROWDED * inputs.n_samples


def single_code(inputs: Inputs, so: str) -> tuple[str, ...]:
    return (f"one code: {so}",) if inputs.n_codes == 1 else ()


def single_factor(inputs: Inputs, so: str) -> tuple[str, ...]:
    return (f"one factor: {so}",) if inputs.n_factors == 1 else ()


@shared
def notes_on_dependence(levels: Levels) -> tuple[str, ...]:
    """Factors that tell of each other, so that not even they themselves, as codes, would score best.

    Pairs with more combinations of levels than rows are left out: what they seem to share is mostly luck.
    """
    n_samples, sizes, entropies = len(levels.levels), np.array(levels.sizes), factor_entropy(levels)
    pairs = []
    for two in range(1, len(sizes)):
        partners = np.flatnonzero(sizes[:two] * sizes[two] <= n_samples)
        if len(partners) == 0:
            continue
        factor = Levels(levels.levels[:, [two]], levels.sizes[two : two + 1], (), levels.weights)
        information = mutual_information(levels.levels[:, partners], factor)[:, 0]
        spurious = (sizes[partners] - 1) * (sizes[two] - 1) / (2 * n_samples)
        shares = (information - spurious) / np.minimum(entropies[partners], entropies[two])
        pairs += [(share, one, two) for share, one in zip(shares.tolist(), partners.tolist(), strict=True)]
    dependent = sorted((pair for pair in pairs if pair[0] >= DEPENDENT), reverse=True)
    if not dependent:
        return ()
    share, one, two = dependent[0]
    n_more = len(dependent) - 1
    more = f"; so {'does' if n_more == 1 else 'do'} {counted(n_more, 'more pair')}" if n_more else ""
    return (
        f"factors {one} and {two} depend on each other (normalised mutual information {share:.2f}): even codes that "
        f"equal the factors fall short of the best score{more}",
    )
