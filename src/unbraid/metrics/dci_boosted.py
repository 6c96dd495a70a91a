"""DCI with gradient-boosted trees, the convention of disentanglement_lib."""

from collections.abc import Sequence
from typing import Literal, TypeAlias

import numpy as np

from unbraid.base.arguments import check_choice
from unbraid.base.threads import at_once
from unbraid.base.types import ArrayLike, IntArray, Kind
from unbraid.metrics._shared.inputs import as_levels, check_inputs
from unbraid.metrics._shared.metric import DCI_CLAIMS, DCI_FORMULA, FEW_UNCHECKED_HALVES, Metric
from unbraid.metrics._shared.sharing import shared
from unbraid.metrics._shared.train_test_split import constant_rates
from unbraid.metrics._shared.train_valid_test import TrainValidTest, train_valid_test
from unbraid.metrics._solvers.boosting import Boosted, RankedCodes, boosted_classes, ranked_codes
from unbraid.metrics._solvers.trees import as_seen, in_own_order
from unbraid.metrics.dci import DCI, Completeness, Predicted, dci_result

N_ITERATIONS = 100
DEPTH = 3
LEARNING_RATE = 0.1
FRACTIONS = (2 / 3, 1 / 3)  # of the rows: to train on, to test on

Booster: TypeAlias = Literal["histogram", "exact"]


def dci_boosted(
    codes: ArrayLike,
    factors: ArrayLike,
    *,
    kinds: Sequence[Kind] | None = None,
    seed: int = 0,
    groups: ArrayLike | None = None,
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
        groups: (n_samples,) group of each row (trial, animal, video or session); no group is in two parts.
        completeness: "mean" over factors (the paper) or "weighted" by importance (disentanglement_lib). Importances
            sum to 1 for each factor, so the two differ only where no code could split a factor at all.
        booster: "histogram", our own, or "exact", scikit-learn's GradientBoostingClassifier, about a hundred times
            slower. Disentanglement and completeness agree to 0.02. Histograms have up to 128 bins of as many rows, with
            more than 64 codes 32 that narrow towards both ends; cuts are then sought between values.
        test_codes: (n, n_codes) rows to test on, for a split like the 10 000 and 5 000 rows of disentanglement_lib;
            all rows of `codes` then train.
        test_factors: (n, n_factors) their factors.

    Returns:
        DCI. `disentanglement` and `completeness` in [0, 1], higher is better. `informativeness` is the mean rate of
        wrong classes among the test rows, lower is better (disentanglement_lib prints 1 less this); `baseline` is what
        the commonest training class scores on them. `tuned` is the depth, always 3. Chance: not 0. A factor that cannot
        be predicted has importances that sum to 1 as those of any other, and noise scores above 0, the more, the fewer
        the rows and the more the codes: compare with shuffled rows (`null`). Two codes that are identical share their
        importance about evenly; a constant code has none. Depends on the number of rows. Invariant to order, sign and
        monotone changes of codes, up to where cuts fall between values; not to rotation.

    Raises:
        ValueError: what every metric refuses, or an unknown option.

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
    check_choice("booster", booster, ("histogram", "exact"))
    inputs = check_inputs(codes, factors, kinds, seed, groups=groups)
    split = train_valid_test(inputs, seed, test_codes, test_factors, FRACTIONS)
    return dci_result(boosted_predicted(split, seed, booster), completeness)


@shared
def boosted_predicted(split: TrainValidTest, seed: int, booster: Booster) -> Predicted:
    levels = as_levels(split.inputs, n_known=split.n_known)
    order, codes = _ranked(split)
    learnt, tested = levels.levels[split.train], levels.levels[split.test]
    boosted = _boosted(codes, learnt, seed, booster)
    importance, notes = np.zeros((split.inputs.n_codes, len(levels.sizes))), []
    importance[order] = np.stack([fitted.importance[: len(order)] for fitted in boosted], axis=1)
    for factor, classes in enumerate(learnt.T):
        unseen = levels.sizes[factor] - len(np.unique(classes))
        notes += [f"factor {factor}: {unseen} of its levels are in no training row"] if unseen else []
    which = "histograms" if booster == "histogram" else "scikit-learn"
    return Predicted(
        importance=importance,
        errors=np.mean(np.stack([fitted.predicted for fitted in boosted], axis=1) != tested, axis=0),
        baseline=constant_rates(learnt, tested),
        classified=(True,) * split.inputs.n_factors,
        tuned=np.full(split.inputs.n_factors, float(DEPTH)),
        notes=(
            f"gradient-boosted trees ({which}), share of the total decrease of squared error; {split.note}",
            *levels.notes,
            *notes,
        ),
    )


@shared
def _ranked(split: TrainValidTest) -> tuple[IntArray, RankedCodes]:
    """Which codes vary, and these as ranks."""
    codes = split.inputs.codes
    order, known, test = in_own_order(codes[split.train], codes[split.test])
    return order, ranked_codes(known, test)


def _boosted(codes: RankedCodes, levels: IntArray, seed: int, booster: Booster) -> list[Boosted]:
    """The trees of each column of levels (n_train, n_factors)."""
    if booster == "exact":
        return [_scikit_learn(codes, classes, seed) for classes in levels.T]

    def boosted(classes: IntArray, _: object) -> Boosted:
        return boosted_classes(codes, classes, n_iterations=N_ITERATIONS, learning_rate=LEARNING_RATE, seed=seed)

    return at_once(boosted, list(levels.T), list(levels.max(axis=0) + 1))  # an iteration grows a tree for each class


def _scikit_learn(codes: RankedCodes, classes: IntArray, seed: int) -> Boosted:
    """Of ranks, not values: in single precision, which its trees use, near values are one."""
    from sklearn.ensemble import GradientBoostingClassifier

    present, labels = as_seen(classes)
    known, test = np.split(codes.ranks.T.astype(np.float64), [len(classes)])
    if len(present) == 1:
        return Boosted(np.zeros(len(codes.ranks)), present, np.ones((len(test), 1)))
    model = GradientBoostingClassifier(
        n_estimators=N_ITERATIONS, max_depth=DEPTH, learning_rate=LEARNING_RATE, random_state=seed
    ).fit(known, labels)
    importance = np.maximum(model.feature_importances_, 0.0)  # below 0 by rounding, where a split gains nothing
    return Boosted(importance, present, np.asarray(model.predict_proba(test)))


METRIC = Metric(
    dci_boosted,
    title="DCI, boosted trees",
    question="one_factor",
    headline="disentanglement",
    claims=DCI_CLAIMS,
    summary="How far each code is about one factor only, by boosted trees, as in most published tables.",
    limitations="Grows with the number of rows. An unpredictable factor distributes its full share of importance too.",
    source="Eastwood & Williams 2018, section 2; Locatello et al. 2019 (disentanglement_lib)",
    version=5,
    stochastic=True,
    slow=True,
    tolerance=0.01,
    interval=FEW_UNCHECKED_HALVES,
    cites=("eastwood2018framework", "locatello2019challenging"),
    formula=(
        DCI_FORMULA,
        r"$R_{ij}$ is the total gain of code $i$ in 100 boosted trees of depth 3 that classify factor $j$.",
    ),
)
