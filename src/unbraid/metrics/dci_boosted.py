"""DCI with gradient-boosted trees, the convention of disentanglement_lib."""

from collections.abc import Sequence
from typing import Literal, TypeAlias

import numpy as np

from unbraid.metrics._boosting import Boosted, boosted_classes, ranked_codes
from unbraid.metrics._inputs import as_levels, check_inputs
from unbraid.metrics._sharing import shared
from unbraid.metrics.dci import DCI, Completeness, Predicted, Split, constant_rates, dci_result, train_valid_test
from unbraid.types import ArrayLike, FloatArray, IntArray, Kind

N_ITERATIONS = 100
DEPTH = 3
LEARNING_RATE = 0.1

Booster: TypeAlias = Literal["histogram", "exact"]


def dci_boosted(
    codes: ArrayLike,
    factors: ArrayLike,
    *,
    kinds: Sequence[Kind] | None = None,
    seed: int = 0,
    completeness: Completeness = "mean",
    booster: Booster = "histogram",
    test_codes: ArrayLike | None = None,
    test_factors: ArrayLike | None = None,
) -> DCI:
    """Disentanglement, completeness and informativeness by gradient-boosted trees that classify each factor.

    Args:
        codes: (n_samples, n_codes) real. Posterior means unless stated otherwise.
        factors: (n_samples, n_factors). Every level is a class; continuous factors are cut into 20 bins of equal width.
        kinds: kind of each factor; see `unbraid.metrics`.
        seed: of the split into 2/3 training and 1/3 test rows, and of the order in which equally good codes are tried.
        completeness: "mean" over factors (the paper) or "weighted" by importance (disentanglement_lib). Importances
            sum to 1 for each factor, so the two differ only where no code could split a factor at all.
        booster: "histogram", our own, or "exact", scikit-learn's GradientBoostingClassifier, about a hundred times
            slower. Disentanglement and completeness agree to 0.02.
        test_codes: (n, n_codes) rows to test on, for a split like the 10 000 and 5 000 rows of disentanglement_lib;
            all rows of `codes` then train.
        test_factors: (n, n_factors) their factors.

    Returns:
        DCI. `disentanglement` and `completeness` in [0, 1], higher is better. `informativeness` is the mean rate of
        wrong classes among the test rows, lower is better (disentanglement_lib prints 1 less this). `tuned` is the
        depth, always 3. Chance: near 0 for the first two, since trees on noise use every code. Two codes
        that are identical share their importance about evenly; a constant code has none. Depends on the number of
        rows. Not invariant to rotation of codes.

    Raises:
        ValueError: shapes disagree, values not finite, a factor is constant or has one sample per value, or an unknown
            option.

    Reference:
        Eastwood & Williams 2018, section 2, as evaluated by disentanglement_lib (Locatello et al. 2019) and the
        published tables of UDR, LSBD and SNC/NK: 100 iterations, depth 3, learning rate 0.1, and as importance the
        total decrease of squared error, which is what scikit-learn's `feature_importances_` says. Differs from
        disentanglement_lib: seeded, where each of its runs gives another number.

    Example:
        >>> grid = np.tile(FactorSpace(("a", "b"), (3, 4), ("ordinal", "ordinal")).grid(), (20, 1))
        >>> scores = dci_boosted(grid, grid)
        >>> round(scores.disentanglement, 3), round(scores.completeness, 3), scores.informativeness
        (1.0, 1.0, 0.0)
    """
    if booster not in ("histogram", "exact"):
        raise ValueError(f"booster must be 'histogram' or 'exact'; got {booster!r}")
    inputs = check_inputs(codes, factors, kinds, seed)
    split = train_valid_test(inputs, seed, test_codes, test_factors, (2 / 3, 1 / 3))
    return dci_result(boosted_predicted(split, seed, booster), completeness)


@shared
def boosted_predicted(split: Split, seed: int, booster: Booster) -> Predicted:
    levels = as_levels(split.inputs)
    train_codes, test_codes = split.inputs.codes[split.train], split.inputs.codes[split.test]
    codes = ranked_codes(train_codes, test_codes)
    importances, errors, absent = [], [], []
    for column in range(split.inputs.n_factors):
        train, test = levels.levels[split.train, column], levels.levels[split.test, column]
        if booster == "exact":
            fitted = _scikit_learn(train_codes, train, test_codes, seed)
        else:
            fitted = boosted_classes(
                codes, train, n_iterations=N_ITERATIONS, learning_rate=LEARNING_RATE, seed=[seed, column]
            )
        importances.append(fitted.importance)
        errors.append(np.mean(fitted.predicted != test))
        unseen = levels.sizes[column] - len(np.unique(train))
        absent += [f"factor {column}: {unseen} of its levels are in no training row"] if unseen else []
    which = "histograms" if booster == "histogram" else "scikit-learn"
    return Predicted(
        importance=np.stack(importances, axis=1),
        errors=np.array(errors),
        baseline=constant_rates(levels.levels[split.train], levels.levels[split.test]),
        classified=(True,) * split.inputs.n_factors,
        tuned=np.full(split.inputs.n_factors, float(DEPTH)),
        notes=(
            f"gradient-boosted trees ({which}), share of the total decrease of squared error; {split.note}",
            *levels.notes,
            *absent,
        ),
    )


def _scikit_learn(train_codes: FloatArray, train: IntArray, test_codes: FloatArray, seed: int) -> Boosted:
    from sklearn.ensemble import GradientBoostingClassifier

    if len(np.unique(train)) == 1:
        return Boosted(np.zeros(train_codes.shape[1]), np.full(len(test_codes), train[0]))
    model = GradientBoostingClassifier(
        n_estimators=N_ITERATIONS, max_depth=DEPTH, learning_rate=LEARNING_RATE, random_state=seed
    ).fit(train_codes, train)
    return Boosted(np.asarray(model.feature_importances_), np.asarray(model.predict(test_codes)))
