"""DCI-ES: DCI with explicitness, by the losses of probes of rising capacity, and size."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal, TypeAlias, get_args

import numpy as np

from unbraid.base.arguments import check_choice, check_number, check_whole
from unbraid.base.repr import Shown
from unbraid.base.types import ArrayLike, FloatArray, Kind
from unbraid.metrics._shared.capacities import by_forests, by_perceptrons, by_random_features, check_capacities
from unbraid.metrics._shared.inputs import check_inputs, note_on
from unbraid.metrics._shared.metric import DCI_CLAIMS, FEW_UNCHECKED_HALVES, Metric
from unbraid.metrics._shared.train_valid_test import train_valid_test
from unbraid.metrics.dci import dci_from_importance

ProbeName: TypeAlias = Literal["forest", "mlp", "rff"]
N_TREES = 100
TOLD = 0.05  # informativeness below which a factor is not told, and its curve says nothing


@dataclass(frozen=True, eq=False, repr=False)
class DCIES(Shown):
    explicitness: float
    explicitness_published: float  # without regard to how much is told
    disentanglement: float
    completeness: float
    informativeness: float  # mean over factors at the capacity where it is best, 1 at most; higher is better
    size: float  # n_factors / n_codes
    per_factor: FloatArray  # (n_factors,) explicitness
    informativeness_per_factor: FloatArray  # (n_factors,) at that capacity
    importance: FloatArray  # (n_codes, n_factors) at that capacity
    capacities: FloatArray  # (n_capacities,) depths, or logarithms of parameters or features
    curves: FloatArray  # (n_capacities, n_factors) least test loss up to each capacity
    notes: tuple[str, ...] = ()


def dci_es(
    codes: ArrayLike,
    factors: ArrayLike,
    *,
    kinds: Sequence[Kind] | None = None,
    seed: int = 0,
    groups: ArrayLike | None = None,
    probe: ProbeName = "forest",
    n_trees: int = N_TREES,
    capacities: Sequence[int] | None = None,
    published: bool = False,
    test_codes: ArrayLike | None = None,
    test_factors: ArrayLike | None = None,
) -> DCIES:
    """How little capacity a probe needs to predict each factor, with DCI and the size of the codes.

    Random forests of growing depth, or other probes of growing capacity, predict each factor from all codes;
    `explicitness_from_curve` of their test losses is 1 where the smallest does as well as the largest.

    Args:
        codes: (n_samples, n_codes) real. Posterior means unless stated otherwise.
        factors: (n_samples, n_factors). Categorical factors are classified, all others regressed as numbers.
        kinds: kind of each factor; see `unbraid.metrics`.
        seed: of the split into four parts of training rows and one of test rows, and of the probes.
        groups: (n_samples,) group of each row (trial, animal, video or session); no group is in two parts.
        probe: "forest", of depth 1 to 32. "mlp", a linear probe and perceptrons of 2 to 256 hidden units, a capacity
            the logarithm of the number of parameters; what a factor takes by `r2` or `mlp_accuracy` this takes nine
            times. "rff", ridge regression on 16 to 2048 random Fourier features of .08 cycles a standard deviation, a
            capacity the logarithm of their number. Explicitness depends on the probe and its capacities: compare it
            within one alone. Forests weigh codes by impurity, the others by the rise of the test loss when a code is
            shuffled.
        n_trees: of each forest, 1 to 1000; the paper takes 100.
        capacities: depths of forests (1 to 40), hidden units of perceptrons (0, a linear probe, to 4096) or even
            numbers of random features (2 to 8192): two or more, ascending. Default: those above, of forests 1, 2, 3, 4,
            8, 10, 12, 14, 16, 18, 20 and 32. Fewer and smaller ones take less time.
        published: score the explicitness of factors that no capacity predicts like that of all others, as the paper
            does: `explicitness` is then `explicitness_published`.
        test_codes: (n, n_codes) rows to test on; all rows of `codes` then train.
        test_factors: (n, n_factors) their factors.

    Returns:
        DCIES. `explicitness` in [-1, 1] is the headline, higher is better; 0 for a loss that falls in a straight line.
        A flat curve scores 1, also that of noise, which therefore beats perfect codes in `explicitness_published`; here
        a factor that no capacity tells (informativeness below .05) counts 0, with a note. Never rank by explicitness
        alone. `informativeness` is R^2 of regressed factors, and accuracy less that of guessing, over what it can be,
        of categorical ones. Chance: 0 of many rows; of few, some capacity predicts a factor by luck, whose flat curve
        then counts: compare with shuffled rows (`null`). Invariant to order, sign and monotone changes of codes, up to
        where cuts fall between values; not to rotation.

    Raises:
        ValueError: what every metric refuses, too few rows, an unknown probe, `n_trees` out of range, or `capacities`
            that a probe cannot have or that do not ascend.

    Reference:
        Eastwood et al. 2023, "DCI-ES: An Extended Disentanglement Framework with Connections to Identifiability",
        explicitness and size. Depths as theirs; their perceptrons have two hidden layers of 14 to 3603 units, their
        random features number up to 131 072, and SAGE values are the importance of both.

    Example:
        >>> grid = np.tile(FactorSpace(("a", "b"), (8, 9), ("ordinal", "ordinal")).grid(), (4, 1))
        >>> dci_es(grid, grid, n_trees=10).explicitness > 0.95
        True
    """
    check_whole("n_trees", n_trees, 1, 1000)
    check_choice("probe", probe, get_args(ProbeName))
    numbers = check_capacities(probe, capacities)
    inputs = check_inputs(codes, factors, kinds, seed, groups=groups)
    split = train_valid_test(inputs, seed, test_codes, test_factors, (0.8, 0.2))
    rows = split.inputs
    if probe == "forest":
        curves = by_forests(split, seed, n_trees, numbers)
    else:
        curves = {"mlp": by_perceptrons, "rff": by_random_features}[probe](split, seed, numbers)
    sizes, losses, baselines, importance_at = curves
    informativeness = 1.0 - losses / baselines
    best = informativeness.max(axis=0)
    known = best >= TOLD
    at = int(informativeness.mean(axis=1).argmax())
    importance, per_factor = importance_at(at), _explicitness(sizes, losses, baselines)
    as_published = float(per_factor.mean())
    if not published:
        per_factor = np.where(known, _explicitness(sizes, np.minimum(losses, baselines), baselines), 0.0)
    dci = dci_from_importance(importance)
    return DCIES(
        explicitness=float(per_factor.mean()),
        explicitness_published=as_published,
        disentanglement=dci.disentanglement,
        completeness=dci.completeness,
        informativeness=float(informativeness[at].mean()),
        size=inputs.n_factors / inputs.n_codes,
        per_factor=per_factor,
        informativeness_per_factor=informativeness[at],
        importance=importance,
        capacities=sizes,
        curves=np.minimum.accumulate(losses, axis=0),
        notes=(
            *(
                f"factor {factor}: no capacity can predict it ({best[factor]:.2f}), "
                + ("but its curve counts, as published" if published else "so its flat curve counts 0")
                for factor in np.flatnonzero(~known)
            ),
            *note_on([k for k, kind in enumerate(rows.kinds) if kind == "cyclic"], "regressed as numbers", "cyclic"),
            *dci.notes,
        ),
    )


def explicitness_from_curve(capacities: ArrayLike, losses: ArrayLike, baseline: float = 1.0) -> float:
    """1 - 2 A / ((largest - smallest capacity) baseline), A the area of the curve of losses above its least.

    Args:
        capacities: (n,) ascending, at least two.
        losses: (n,) of which the least so far counts at each capacity.
        baseline: loss of a constant: 1 for 1 - R^2, 1 - 1 / n_classes for wrong classes.

    Returns:
        In [-1, 1] for losses from 0 to `baseline`: 1 flat, 0 falling in a straight line, -1 falling at the end alone.

    Raises:
        ValueError: shapes disagree, capacities do not ascend, or a number is not finite.

    Example:
        >>> explicitness_from_curve([1, 2, 3], [0.5, 0.25, 0.0]), explicitness_from_curve([1, 2, 3], [1, 1, 0])
        (0.5, -0.5)
    """
    check_number("baseline", baseline, above=0.0)
    x, y = np.asarray(capacities, dtype=float), np.asarray(losses, dtype=float)
    if x.ndim != 1 or x.shape != y.shape or len(x) < 2 or not np.isfinite([x, y]).all() or (np.diff(x) <= 0).any():
        raise ValueError("capacities must be at least two ascending numbers, each with a finite loss")
    least = np.minimum.accumulate(y)
    area = np.sum(np.diff(x) * (least[1:] + least[:-1] - 2 * least[-1]) / 2)
    return float(1.0 - 2.0 * area / ((x[-1] - x[0]) * baseline))


def _explicitness(capacities: FloatArray, losses: FloatArray, baselines: FloatArray) -> FloatArray:
    """(n_factors,)"""
    pairs = zip(losses.T, baselines, strict=True)
    return np.array([explicitness_from_curve(capacities, curve, baseline) for curve, baseline in pairs])


METRIC = Metric(
    dci_es,
    title="DCI-ES",
    question="work",
    headline="explicitness",
    claims={**DCI_CLAIMS, "informativeness": ("explicitness",)},
    range=(-1.0, 1.0),
    summary="How small the depth is at which a random forest predicts each factor; with DCI and size.",
    limitations="Ignores how good the best prediction is: see informativeness. Blind to rotations that trees undo.",
    source="Eastwood et al. 2023 (DCI-ES)",
    version=3,
    stochastic=True,
    tolerance=0.03,
    aligned=False,
    linear=False,
    standard=False,
    interval=FEW_UNCHECKED_HALVES,
    cites=("eastwood2023dci", "eastwood2018framework"),
    formula=(
        r"E = \frac{1}{K} \sum_{k=1}^{K} \left( 1 - \frac{2}{(\kappa_{\max} - \kappa_{\min}) \, b_k} "
        r"\int_{\kappa_{\min}}^{\kappa_{\max}} \left( \ell_k(\kappa) - \min \ell_k \right) d\kappa \right)",
        r"$\ell_k(\kappa)$ is the least test loss of forests of depth up to $\kappa$, 1 to 32, for factor "
        r"$k$: $1 - R^2$, or "
        r"the rate of wrong classes; $b_k$ is that of a constant. Of other probes $\kappa$ is the logarithm "
        r"of the number of "
        r"parameters (`mlp`) or features (`rff`).",
    ),
)
