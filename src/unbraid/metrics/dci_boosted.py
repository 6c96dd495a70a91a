"""DCI with gradient-boosted trees, the convention of disentanglement_lib."""

from collections.abc import Sequence
from typing import Literal, NamedTuple, TypeAlias

import numpy as np

from unbraid._utils.arguments import check_choice
from unbraid._utils.threads import at_once
from unbraid.metrics._shared.chance import zero_chance
from unbraid.metrics._shared.inputs import Inputs, as_levels, check_inputs, split_rows
from unbraid.metrics._shared.luck import N_HELD_OUT, beats_constant, beats_luck, unpredicted
from unbraid.metrics._shared.metric import DCI_CLAIMS, DCI_FORMULA, FEW_UNCHECKED_HALVES, Metric
from unbraid.metrics._shared.sharing import of_codes, shared
from unbraid.metrics._shared.train_test_split import constant_rates
from unbraid.metrics._shared.train_valid_test import TrainValidTest, train_valid_test
from unbraid.metrics._solvers.boosting import Boosted, RankedCodes, boosted_classes, ranked_codes
from unbraid.metrics._solvers.trees import as_seen, in_own_order
from unbraid.metrics.dci import DCI, Completeness, Predicted, dci_from_importance, dci_result
from unbraid.types import ArrayLike, BoolArray, FloatArray, IntArray, Kind

N_ITERATIONS = 100
DEPTH = 3
LEARNING_RATE = 0.1
N_TRIED = 10  # iterations that show whether a factor can be predicted at all: more only learn by heart
N_GLANCED = 3  # iterations that show it first of shuffled rows
# Training rows, and those for each class, from which on these iterations show it surely.
ENOUGH, ENOUGH_OF_CLASS = 2_000, 100
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
            slower. Disentanglement and completeness agree to 0.02.
        test_codes: (n, n_codes) rows to test on, for a split like the 10 000 and 5 000 rows of disentanglement_lib;
            all rows of `codes` then train.
        test_factors: (n, n_factors) their factors.

    Returns:
        DCI. `disentanglement` and `completeness` in [0, 1], higher is better. `informativeness` is the mean rate of
        wrong classes among the test rows, lower is better (disentanglement_lib prints 1 less this); `baseline` is what
        the commonest training class scores on them. `tuned` is the depth, always 3. Chance: 0 for the first two, since
        a factor has no importances unless the two halves of the training rows foretell each other, by 10 iterations,
        better than any constant and than all shuffles of the rows (999 for each factor that there is: with a
        probability of .001 any of them passes by luck). Two codes that are identical share their importance about
        evenly; a constant code has none. With 2000 training rows and 100 for each class, a factor that the halves
        foretell no better than a constant has no trees, and its commonest class is predicted. Depends on the number of
        rows. Invariant to order, sign and monotone changes
        of codes, up to where cuts fall between values; not to rotation.

    Raises:
        ValueError: what every metric refuses, or an unknown option.

    Reference:
        Eastwood & Williams 2018, section 2, as evaluated by disentanglement_lib (Locatello et al. 2019) and the
        published tables of UDR, LSBD and SNC/NK: 100 iterations, depth 3, learning rate 0.1, and as importance the
        total decrease of squared error, which is what scikit-learn's `feature_importances_` says. Differs from
        disentanglement_lib: seeded, where each of its runs gives another number, and a factor that cannot be predicted
        has no importances, where noise scored up to .4 (150 rows, 128 codes).

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
    order, codes, halves = _ranked(split, seed, split.groups)
    learnt, tested = levels.levels[split.train], levels.levels[split.test]
    baseline = constant_rates(learnt, tested)
    held_out = _predictions(halves, learnt, seed, N_TRIED)
    beyond_luck = [beats_luck(*each, len(levels.sizes), seed) for each in held_out]
    enough = _enough(len(learnt), levels.sizes)
    worth = [factor for factor, each in enumerate(held_out) if not enough[factor] or beats_constant(*each)]
    boosted = dict(zip(worth, _boosted(codes, learnt[:, worth], seed, booster), strict=True))
    importance, errors, notes = np.zeros((split.inputs.n_codes, len(levels.sizes))), baseline.copy(), []
    for factor, fitted in boosted.items():
        errors[factor] = np.mean(fitted.predicted != tested[:, factor])
        if beyond_luck[factor]:
            importance[order, factor] = fitted.importance[: len(order)]
    for factor, classes in enumerate(learnt.T):
        unseen = levels.sizes[factor] - len(np.unique(classes))
        notes += [f"factor {factor}: {unseen} of its levels are in no training row"] if unseen else []
        notes += [] if beyond_luck[factor] else [unpredicted(factor)]
    which = "histograms" if booster == "histogram" else "scikit-learn"
    return Predicted(
        importance=importance,
        errors=errors,
        baseline=baseline,
        classified=(True,) * split.inputs.n_factors,
        tuned=np.full(split.inputs.n_factors, float(DEPTH)),
        notes=(
            f"gradient-boosted trees ({which}), share of the total decrease of squared error; {split.note}",
            *levels.notes,
            *notes,
        ),
    )


def dci_boosted_of_shuffles(inputs: Inputs, orders: IntArray, *, seed: int) -> list[tuple[float, FloatArray]]:
    """Disentanglement and completeness of each factor, row i of the factors beside row `orders[t, i]` of the codes.

    Of enough shuffled rows, factors that a few iterations foretell no better than a constant have no importances. More
    iterations are tried for the others, and for rows that stay in their places.
    """
    split, levels = train_valid_test(inputs, seed, None, None, FRACTIONS), as_levels(inputs)
    order, codes, halves = _ranked(split, seed, None)
    in_place = (orders == np.arange(inputs.n_samples)).all(axis=1)
    glance = ~in_place[:, None] & _enough(len(split.train), levels.sizes)
    # The factors of all orders side by side.
    learnt = np.concatenate([levels.levels[np.argsort(each)[split.train]] for each in orders], axis=1)
    left = np.arange(learnt.shape[1])
    seen = _predictions(halves, learnt[:, glance.ravel()], seed, N_GLANCED)
    left = np.delete(left, np.flatnonzero(glance)[[not beats_constant(*each) for each in seen]])
    tried = _predictions(halves, learnt[:, left], seed, N_TRIED)
    left = left[[beats_luck(*each, inputs.n_factors, seed) for each in tried]]
    importance = np.zeros((learnt.shape[1], inputs.n_codes))
    for column, fitted in zip(left, _boosted(codes, learnt[:, left], seed, "histogram"), strict=True):
        importance[column, order] = fitted.importance[: len(order)]
    scores = [dci_from_importance(each.T) for each in np.split(importance, len(orders))]
    return [(each.disentanglement, each.per_factor) for each in scores]


class _Half(NamedTuple):
    """Half of the training rows, from which rows of the other half are predicted."""

    codes: RankedCodes  # of `rows` and then of `others`
    rows: IntArray
    others: IntArray


@of_codes
def _ranked(split: TrainValidTest, seed: int, groups: IntArray | None) -> tuple[IntArray, RankedCodes, list[_Half]]:
    """Which codes vary, these as ranks, and each half of the training rows."""
    codes = split.inputs.codes
    order, known, asked = in_own_order(codes[split.train], codes[split.test])
    return order, ranked_codes(known, asked), _halves(known, seed, groups)


class _Task(NamedTuple):
    """The trees of one factor."""

    codes: RankedCodes
    classes: IntArray  # (n_train,)
    n_iterations: int

    @property
    def cost(self) -> int:
        """About: every iteration grows a tree for each class."""
        return self.n_iterations * len(self.classes) * (int(self.classes.max(initial=0)) + 1)

    def boosted(self, seed: int) -> Boosted:
        return boosted_classes(
            self.codes, self.classes, n_iterations=self.n_iterations, learning_rate=LEARNING_RATE, seed=seed
        )


def _halves(codes: FloatArray, seed: int, groups: IntArray | None) -> list[_Half]:
    """Each half of the rows; none where one of them would be empty."""
    if groups is None:
        halves = np.array_split(np.random.default_rng(seed).permutation(len(codes)), 2)
    else:
        halves = split_rows(len(codes), (0.5, 0.5), seed, groups)
    if not all(map(len, halves)):
        return []
    pairs = [(rows, others[: N_HELD_OUT // 2]) for rows, others in (halves, halves[::-1])]
    return [_Half(ranked_codes(codes[rows], codes[others]), rows, others) for rows, others in pairs]


def _enough(n_train: int, sizes: Sequence[int]) -> BoolArray:
    """(n_factors,) whether so many training rows show surely, by iterations on their halves, what can be predicted."""
    return n_train >= np.maximum(ENOUGH, ENOUGH_OF_CLASS * np.array(sizes))


def _predictions(
    halves: Sequence[_Half], levels: IntArray, seed: int, n_iterations: int
) -> list[tuple[FloatArray, tuple[IntArray, FloatArray]]]:
    """What each half of the training rows foretells of the other for each factor, and the truth: see `beats_luck`."""
    n_factors = levels.shape[1]
    held_out = np.concatenate([half.others for half in halves]) if halves else np.zeros(0, dtype=np.int64)
    predicted = [np.zeros((len(held_out), size)) for size in levels.max(axis=0) + 1]
    tasks = [_Task(half.codes, classes, n_iterations) for half in halves for classes in levels[half.rows].T]
    found = at_once(lambda task, _: task.boosted(seed), tasks, [task.cost for task in tasks])
    for place, fitted in enumerate(found):
        half, factor = divmod(place, n_factors)
        own = np.arange(len(halves[half].others)) + half * len(halves[0].others)
        predicted[factor][np.ix_(own, fitted.classes)] = fitted.probabilities
    return [(own, (truth, np.ones(len(truth)))) for own, truth in zip(predicted, levels[held_out].T, strict=True)]


def _boosted(codes: RankedCodes, levels: IntArray, seed: int, booster: Booster) -> list[Boosted]:
    """All iterations for each column of levels (n_train, n_columns)."""
    if booster == "exact":
        return [_scikit_learn(codes, classes, seed) for classes in levels.T]
    tasks = [_Task(codes, classes, N_ITERATIONS) for classes in levels.T]
    return at_once(lambda task, _: task.boosted(seed), tasks, [task.cost for task in tasks])


def _scikit_learn(codes: RankedCodes, classes: IntArray, seed: int) -> Boosted:
    """Of ranks, not values: in single precision, which its trees use, near values are one."""
    from sklearn.ensemble import GradientBoostingClassifier

    present, labels = as_seen(classes)
    known, asked = np.split(codes.ranks.T.astype(np.float64), [len(classes)])
    if len(present) == 1:
        return Boosted(np.zeros(len(codes.ranks)), present, np.ones((len(asked), 1)))
    model = GradientBoostingClassifier(
        n_estimators=N_ITERATIONS, max_depth=DEPTH, learning_rate=LEARNING_RATE, random_state=seed
    ).fit(known, labels)
    importance = np.maximum(model.feature_importances_, 0.0)  # below 0 by rounding, where a split gains nothing
    return Boosted(importance, present, np.asarray(model.predict_proba(asked)))


METRIC = Metric(
    dci_boosted,
    title="DCI, boosted trees",
    question="one_factor",
    headline="disentanglement",
    claims=DCI_CLAIMS,
    chance=zero_chance,
    summary="How far each code is about one factor only, by boosted trees, as in most published tables.",
    limitations="Grows with the number of rows. Trees of depth 3 fit noise in every code, which lowers good scores.",
    source="Eastwood & Williams 2018, section 2; Locatello et al. 2019 (disentanglement_lib)",
    version=3,
    stochastic=True,
    slow=True,
    tolerance=0.01,
    interval=FEW_UNCHECKED_HALVES,
    of_shuffles=dci_boosted_of_shuffles,
    cites=("eastwood2018framework", "locatello2019challenging"),
    formula=(
        DCI_FORMULA,
        r"$R_{ij}$ is the total gain of code $i$ in 100 boosted trees of depth 3 that classify factor $j$.",
    ),
)
