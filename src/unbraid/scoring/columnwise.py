"""Score cards of sparse codes, and of wide codes on the disk, read by columns; the card holds the codes that matter."""

import math
import time
from collections.abc import Collection, Mapping
from typing import Any

import numpy as np

from unbraid.base.arrays import CELLS, finite_sparse, is_sparse, memory_of, n_stored
from unbraid.base.counted import counted
from unbraid.base.memory import check_memory
from unbraid.base.repr import with_names
from unbraid.data import Representation
from unbraid.data.labels import Labels, read_labels
from unbraid.metrics import Metric, NotDefined
from unbraid.metrics._shared.provenance import decision
from unbraid.metrics.wide import WIDE, WINDOW, one_pass
from unbraid.scoring.card import FailedMetric, OnError, ScoreCard, Scored, none_computed
from unbraid.scoring.card_memory import FACTOR
from unbraid.scoring.engine import of_no_metric, validate

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


def score_wide(
    codes: Any, labels: Any, chosen: Mapping[str, Metric], *, seed: int, failing: OnError, **description: Any
) -> ScoreCard:
    """The card of wide codes, by the metrics that read codes column by column.

    Args:
        codes: (n_samples, n_codes) sparse, SciPy's or a torch tensor; or numbers that lie on the disk (numpy.memmap).
        labels: as `Representation.of` takes them.
        chosen: rows by name. Those that need all codes at once are skipped, with what they would take as the reason.
        seed: of the metrics.
        failing: what becomes of a metric that raises an error.
        **description: of the labels, as `Representation.of` takes it.

    Raises:
        ValueError: unsound input, or none of the metrics reads codes by columns; rows lack labels of codes on the disk.
    """
    size = memory_of(codes.shape)
    why = f"needs all codes at once as a full array, which takes {size} here and is made by dense=True (--dense)"
    skipped = {name: why for name in chosen if name not in WIDE}
    if len(skipped) == len(chosen):
        raise ValueError(f"{', '.join(skipped)} {why}; {', '.join(WIDE)} read sparse codes by columns")
    if labels is None:
        raise ValueError("these codes have no factors to score against: give labels")
    read = read_labels(labels, **description)
    if len(read.used) != codes.shape[0]:
        raise ValueError(
            f"codes and labels must have the same rows; got codes {tuple(codes.shape)} and labels of "
            f"{len(read.used)} rows"
        )
    rows = np.flatnonzero(read.used)
    n_unlabelled = codes.shape[0] - len(rows)
    stored = STORED * n_stored(codes) * _copies(codes, n_unlabelled > 0) if is_sparse(codes) else 0
    at_once = min(AT_ONCE, max(2, CELLS // max(1, codes.shape[0])))
    check_memory(len(rows) * (COLUMN * at_once + FACTOR * read.factors.shape[1]) + stored, "give fewer rows")
    used = finite_sparse(codes, read.used) if is_sparse(codes) else codes
    if n_unlabelled:
        if not is_sparse(used):
            raise ValueError(
                f"{counted(n_unlabelled, 'row')} without a label: leave such rows out of codes that are read from the "
                "disk"
            )
        used = used.tocsr()[rows]
    started = time.perf_counter()
    summary = one_pass(used, read.factors, kinds=read.kinds, seed=seed, sizes=read.sizes, at_once=at_once)
    shared = (time.perf_counter() - started) / (len(chosen) - len(skipped))
    names = tuple(f"code {code}" for code in summary.leading)
    notes = (
        f"{used.shape[1]:,} codes were scored; the card shows the {len(names)} that matter: the best of each factor, "
        "those matched one to one, and those as good",
    )
    notes += notes_on_signs(used, chosen) if is_sparse(used) else ()
    representation = Representation(
        summary.codes, read.factors, names=read.names, kinds=read.kinds, sizes=read.sizes, levels=read.levels,
        notes=(*read.notes, *notes), code_names=names, periods=read.periods,
    )  # fmt: skip
    scored: dict[str, Scored] = {}
    failed: dict[str, FailedMetric] = {}
    for name in [name for name in chosen if name not in skipped]:
        started = time.perf_counter()
        try:
            result = WIDE[name](summary)
            seconds = shared + time.perf_counter() - started
            outcome = Scored(chosen[name], result, seconds, factors=representation.names, codes=names)
            validate(name, outcome, len(representation.names))
        except NotDefined as reason:
            hint = _hint_on_booleans(read) if name == "sap" else ""
            skipped[name] = with_names(str(reason), representation.names, names) + hint
        except Exception as error:
            if of_no_metric(error):
                raise
            failed[name] = failing(name, error)
        else:
            scored[name] = outcome
    if not scored:
        raise none_computed(skipped, failed)
    computed_with = {name: decision(name, metric, seed=seed, held_out=None) for name, metric in chosen.items()}
    return ScoreCard(
        representation,
        scored,
        skipped,
        seed,
        failed=failed,
        computed_with=computed_with,
        of_codes=used.shape[1],
        wide_codes=used,
    )


def _hint_on_booleans(read: Labels) -> str:
    """A hint that `sap` scores booleans as ordinal factors, where no other factor is categorical.

    A straight line separates two levels as well as classes do, and a text of two words cannot be ordinal.
    """
    labels = [place for place, kind in enumerate(read.kinds) if kind == "categorical"]
    if not labels or any(read.levels[place] != ("False", "True") for place in labels):
        return ""
    first = read.names[labels[0]]
    rest = f", likewise for the {counted(len(labels) - 1, 'other')}" if len(labels) > 1 else ""
    return f"; --kinds {first}=ordinal (kinds={{{first!r}: 'ordinal'}}) scores it by squared correlation{rest}"


def _copies(codes: Any, some_lost: bool) -> float:
    """How often what a sparse matrix stores is held beside itself while it is scored.

    One by rows is read in windows of columns; others are held by columns, and by rows where some rows are left out.
    """
    window = min(1.0, WINDOW / max(1, codes.shape[1]))
    turned = 0 if getattr(codes, "format", "") in ("csr", "csc") else 1
    return window + turned + (2 if some_lost else 0)
