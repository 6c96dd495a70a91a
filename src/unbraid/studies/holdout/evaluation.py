"""How well codes carry over to images that the model never saw, of combinations or conditions kept from it.

Alone, for a model of one's own:

    for holdout in compositional_holdouts(dataset.space, ["shape", "scale"]):
        part = leave_out(dataset, holdout.without)
        encode = ...  # of a model trained on `part`
        answers.append(evaluate_heads(encode, part, ["shape", "scale"]))

and `summary` of the answers to held-out combinations, beside that of the answers to random splits.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Literal, TypeAlias

import numpy as np

from unbraid.base.arguments import list_of
from unbraid.base.types import ArrayLike, FloatArray, IntArray, Kind
from unbraid.data.image_dataset import FactorDataset
from unbraid.datasets.subset import SubsetDataset
from unbraid.metrics._shared.compiled import interruptible
from unbraid.metrics._shared.inputs import check_inputs
from unbraid.metrics._shared.linear_heads import linear_heads
from unbraid.metrics._shared.probes import perceptrons
from unbraid.metrics._shared.sharing import sharing
from unbraid.metrics._shared.train_test_split import adjusted, train_test_split
from unbraid.metrics.snc import single_code_predictions
from unbraid.metrics.zero_shot import errors_in_gap
from unbraid.studies.holdout.splits import zero_shot_parts

__all__ = [
    "Errors",
    "HoldoutResult",
    "Summary",
    "evaluate_heads",
    "evaluate_regressors",
    "guessing",
    "head_accuracies",
    "summary",
]

Encode: TypeAlias = Callable[[ArrayLike], ArrayLike]
HEADS = ("mlp", "linear", "single")  # the last reads one code for each factor
REGRESSORS: tuple[Literal["lasso", "forest"], ...] = ("lasso", "forest")
N_ROWS = 10_000  # images at most to train heads on, and to test them on
BATCH = 256


@dataclass(frozen=True, eq=False)
class HoldoutResult:
    """Accuracy of heads on images that the model was trained without."""

    accuracy: Mapping[str, FloatArray]  # by head, (3,): first factor, second factor, both at once
    chance: FloatArray  # (3,) the same for guesses
    n_train: int  # rows
    n_test: int


@dataclass(frozen=True, eq=False)
class Summary:
    """Answers of one head to several hold-outs; each (3,): first factor, second factor, both at once."""

    score: FloatArray  # chance-adjusted, 0 to 1, higher is better
    spread: FloatArray | None  # standard deviation over the hold-outs, in the same units; None for a single one


@dataclass(frozen=True, eq=False)
class Errors:
    """NRMSE of one regressor, by factor; lower is better."""

    gap: FloatArray  # (n_factors,) on images of the gap
    ordinary: FloatArray  # (n_factors,) on other images that the model did not see either


def evaluate_heads(
    encode: Encode, part: SubsetDataset, factors: Sequence[str], *, n_rows: int = N_ROWS, seed: int = 0
) -> HoldoutResult:
    """Train heads on codes of the images a model was trained on; test them on the images it was trained without.

    Args:
        encode: images (n, height, width, channels) to codes (n, n_codes).
        part: what the model was trained on, by `unbraid.datasets.leave_out`.
        factors: the two whose levels the heads name.
        n_rows: images at most, drawn without replacement, to train on and to test on.
        seed: of the draw and of the perceptrons.

    Returns:
        HoldoutResult. Heads as in `unbraid.metrics.mlp_accuracy`, `linear_accuracy` and, of a single code, `snc`, one
        per factor; both factors count as named where both heads are right. Perceptrons have never seen the combination
        either, and fail at it even if each factor has a code of its own; the head of a single code does not.

    Raises:
        ValueError: unknown factors, codes that are not such, or a factor with one level in the part.

    Reference:
        Mahon et al. 2023, section 5.2. The paper says "an MLP with one output per feature" and leaves open whether
        outputs share hidden units: here they do not. Chance is that of its eq. 4, guessing as often as levels
        (or pairs of levels, for both at once) occur in the whole dataset.
    """
    space = part.dataset.space
    columns = [space.column(name) for name in list_of("factors", factors)]
    held_out = np.setdiff1d(np.arange(len(part.dataset)), part.positions)
    train, test = (_some(rows, n_rows, [seed, k]) for k, rows in enumerate((part.positions, held_out)))
    accuracy = head_accuracies(
        _encoded(encode, part.dataset, train),
        space.factors(train)[:, columns],
        _encoded(encode, part.dataset, test),
        space.factors(test)[:, columns],
        kinds=[space.kinds[column] for column in columns],
        seed=seed,
    )
    whole = space.factors(np.arange(len(space)))[:, columns]
    return HoldoutResult(accuracy, guessing(whole, space.factors(test)[:, columns]), len(train), len(test))


def head_accuracies(
    codes: ArrayLike,
    factors: ArrayLike,
    test_codes: ArrayLike,
    test_factors: ArrayLike,
    *,
    kinds: Sequence[Kind] | None = None,
    seed: int = 0,
) -> dict[str, FloatArray]:
    """By head, the share of test rows whose first factor, second factor, and both at once it names: (3,).

    Args:
        codes, factors: (n_samples, n_codes) and (n_samples, 2), to train on.
        test_codes, test_factors: (n_test, n_codes) and (n_test, 2).
        kinds, seed: as in `unbraid.metrics.mlp_accuracy`.

    Raises:
        ValueError: as `unbraid.metrics.mlp_accuracy`.
    """
    with sharing():
        rows = train_test_split(codes, factors, kinds, seed, test_codes, test_factors)
        predicted = {
            "mlp": perceptrons(rows, seed, "paper").predicted,
            "linear": linear_heads(rows).predicted,
            "single": single_code_predictions(rows),
        }
        right = {head: levels == rows.levels.levels[rows.test] for head, levels in predicted.items()}
    return {head: np.array([*hits.mean(axis=0), hits.all(axis=1).mean()]) for head, hits in right.items()}


def guessing(factors: IntArray | FloatArray, test_factors: IntArray | FloatArray) -> FloatArray:
    """(3,) accuracy on test rows of guessing levels, and pairs of levels, as often as they occur in `factors`.

    Both (n, 2). Mahon et al. 2023, eq. 4; of a pair held out of a grid, one over the number of levels, and of pairs.
    """
    rows = np.concatenate([factors, test_factors])
    pairs = np.unique(rows, axis=0, return_inverse=True)[1].reshape(-1)
    columns = [np.unique(column, return_inverse=True)[1] for column in rows.T]
    return np.array([_agreement(classes, len(factors)) for classes in (*columns, pairs)])


def summary(accuracy: ArrayLike, chance: ArrayLike) -> Summary:
    """Several answers as one number each: accuracy and chance are averaged first, then max(0, (a - r) / (1 - r)).

    Args:
        accuracy, chance: (n_holdouts, 3).

    Reference:
        Mahon et al. 2023, section 5.2: in this order the averages of its appendix G give its Table 3.
    """
    accuracies, chances = np.atleast_2d(accuracy), np.atleast_2d(chance).mean(axis=0)
    score = adjusted(accuracies.mean(axis=0), chances)
    if len(accuracies) < 2:
        return Summary(score, None)
    return Summary(score, accuracies.std(axis=0, ddof=1) / (1 - chances))


def evaluate_regressors(
    encode: Encode, part: SubsetDataset, gap: str, *, n_rows: int = N_ROWS, seed: int = 0
) -> dict[str, Errors]:
    """Errors of the DCI regressors on a gap that model and regressors were trained without, and on ordinary images.

    Args:
        encode: images (n, height, width, channels) to codes (n, n_codes).
        part: what the model was trained on: by `unbraid.datasets.leave_out`, a dataset without the images that
            `unbraid.studies.holdout.splits.zero_shot_holdout` names for this gap and seed.
        gap: a condition on the factors.
        n_rows: images at most, drawn without replacement, of each part.
        seed: of the hold-out, the draw and the forests.

    Returns:
        By regressor. What the gap costs is its error less that on ordinary images.

    Raises:
        ValueError: as `unbraid.metrics.zero_shot`.

    Reference:
        Eastwood & Williams 2018, appendix B.2: table 5 (the gap) beside tables 3c and 4c (ordinary test images).
    """
    space = part.dataset.space
    parts = (part.positions, *zero_shot_parts(space, gap, seed=seed))
    chosen = [_some(rows, n_rows, [seed, k]) for k, rows in enumerate(parts)]
    codes = np.concatenate([_encoded(encode, part.dataset, rows) for rows in chosen])
    inputs = check_inputs(codes, space.factors(np.concatenate(chosen)), space.kinds)
    train, valid, test, inside = np.split(np.arange(len(codes)), np.cumsum([len(rows) for rows in chosen])[:-1])
    with interruptible():
        results = {name: errors_in_gap(inputs, train, valid, test, inside, name, seed) for name in REGRESSORS}
    return {name: Errors(result.per_factor, result.ordinary_per_factor) for name, result in results.items()}


def _some(rows: IntArray, n: int, seed: list[int]) -> IntArray:
    if len(rows) <= n:
        return rows
    return np.sort(np.random.default_rng(seed).choice(rows, n, replace=False))


def _encoded(encode: Encode, dataset: FactorDataset, rows: IntArray) -> FloatArray:
    batches = [rows[start : start + BATCH] for start in range(0, len(rows), BATCH)]
    return np.concatenate([np.asarray(encode(dataset.images(batch)), dtype=np.float64) for batch in batches])


def _agreement(classes: IntArray, n: int) -> float:
    """Probability that a class drawn from the first `n` rows equals that of a row drawn from the rest."""
    size = int(classes.max()) + 1
    drawn, true = (np.bincount(rows, minlength=size) / len(rows) for rows in (classes[:n], classes[n:]))
    return float(drawn @ true)
