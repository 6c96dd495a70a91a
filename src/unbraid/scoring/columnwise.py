"""Score cards of sparse codes, and of wide codes on the disk, read by columns; the card holds the codes that matter."""

import math
import time
from collections.abc import Collection, Mapping
from dataclasses import replace
from functools import partial
from typing import Any

import numpy as np

from unbraid.base.arrays import CELLS, memory_of, n_stored
from unbraid.base.counted import counted
from unbraid.base.memory import check_memory
from unbraid.base.repr import with_names
from unbraid.metrics import Metric, NotDefined
from unbraid.metrics._shared.provenance import decision
from unbraid.metrics.wide import WIDE, WINDOW, Columns, one_pass
from unbraid.scoring.card import ScoreCard, card_of
from unbraid.scoring.card_memory import FACTOR
from unbraid.scoring.diagnose import diagnose_columns
from unbraid.scoring.engine import ScoreSettings, of_no_metric, validate
from unbraid.scoring.score_data import Data
from unbraid.scoring.scored import Outcome, Scored

AT_ONCE = 128  # columns in memory, of few rows
ONE_DIRECTION = ("snc", "mcc", "sap")  # metrics that read codes by a line or in order
SIGNED = 0.1  # of the values that are not 0, from which share on the rarer sign counts
COLUMN, STORED = 25, 16  # bytes of a number that is held as one of these columns, and of one that a matrix stores


def notes_on_signs(codes: Any, metrics: Collection[str]) -> tuple[str, ...]:
    """Codes (n_samples, n_codes) that are mostly 0 and of both signs elsewhere, dense or sparse, for ONE_DIRECTION."""
    if not {*metrics} & {*ONE_DIRECTION}:
        return ()
    negative, positive = int((codes < 0).sum()), int((codes > 0).sum())
    if 2 * (negative + positive) >= math.prod(codes.shape) or min(negative, positive) < SIGNED * (negative + positive):
        return ()
    return (
        f"codes are mostly 0, with both signs elsewhere: {', '.join(ONE_DIRECTION)} look for one direction per factor, "
        "and are low where either sign says that it is present; score abs(codes), or the positive and the negative "
        "parts as codes of their own if the sign has a meaning",
    )


def score_wide(data: Data, chosen: Mapping[str, Metric], settings: ScoreSettings) -> ScoreCard:
    """The card of wide codes, by the metrics that read codes column by column.

    Those that need all codes at once are skipped, with what they would take as the reason.

    Args:
        data: whose `wide` codes (n_samples, n_codes) are sparse, SciPy's or a torch tensor; or lie on the disk
            (numpy.memmap).
        chosen: rows by name.
        settings: of the scoring.

    Raises:
        ValueError: unsound input, or none of the metrics reads codes by columns; rows lack labels of codes on the disk.
    """
    codes, labelled = data.wide, data.representation
    why = (
        f"needs all codes at once as a full array, which takes {memory_of(codes.shape)} here and is made by dense=True "
        "(--dense)"
    )
    by_metric: dict[str, Outcome] = {name: why for name in chosen if name not in WIDE}
    if chosen and len(by_metric) == len(chosen):
        raise ValueError(f"{', '.join(by_metric)} {why}; {', '.join(WIDE)} read sparse codes by columns")
    if not labelled.names:
        raise ValueError("these codes have no factors to score against: give labels")
    sparse, n_unlabelled = not isinstance(codes, np.ndarray), codes.shape[0] - len(labelled)
    if n_unlabelled and not sparse:
        raise ValueError(
            f"{counted(n_unlabelled, 'row')} without a label: leave such rows out of codes that are read from the disk"
        )
    at_once = min(AT_ONCE, max(2, CELLS // max(1, codes.shape[0])))
    stored = 0.0
    if sparse:  # by rows it is read in windows of columns; else held by columns, and by rows where some are left out
        turned = 0 if getattr(codes, "format", "") in ("csr", "csc") else 1
        copies = min(1.0, WINDOW / max(1, codes.shape[1])) + turned + (2 if n_unlabelled else 0)
        stored = STORED * n_stored(codes) * copies
    check_memory(len(labelled) * (COLUMN * at_once + FACTOR * len(labelled.names)) + stored, "give fewer rows")
    columns = Columns(codes, at_once, data.scored)
    started = time.perf_counter()
    summary = one_pass(columns, labelled.factors, kinds=labelled.kinds, seed=settings.seed, sizes=labelled.sizes)
    shared = (time.perf_counter() - started) / max(1, len(chosen) - len(by_metric))
    names = tuple(f"code {code}" for code in summary.leading)
    notes = (
        f"{columns.n_codes:,} codes were scored; the card shows the {len(names)} that matter: the best of each factor, "
        "those matched one to one, and those as good",
    )
    notes += notes_on_signs(columns.codes, chosen) if sparse else ()
    representation = replace(labelled, codes=summary.codes, code_names=names, notes=(*labelled.notes, *notes))
    for name in [name for name in chosen if name not in by_metric]:
        started = time.perf_counter()
        try:
            result = WIDE[name](summary)
            seconds = shared + time.perf_counter() - started
            scored = Scored(chosen[name], result, seconds, factors=representation.names, codes=names)
            validate(name, scored, len(representation.names))
            by_metric[name] = scored
        except NotDefined as reason:
            by_metric[name] = with_names(str(reason), representation.names, names)
        except Exception as error:
            if of_no_metric(error):
                raise
            by_metric[name] = settings.failure(name, error)
    return card_of(
        representation, by_metric, chosen, settings.seed,
        computed_with={name: decision(name, metric, seed=settings.seed) for name, metric in chosen.items()},
        of_codes=columns.n_codes, wide_codes=columns.codes,
        diagnosing=partial(diagnose_columns, data, settings.seed),
    )  # fmt: skip
