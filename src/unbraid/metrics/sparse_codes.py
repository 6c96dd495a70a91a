"""What is asked of sparse autoencoders, as operations on codes, labels and dictionaries; no language model inside.

SCR and TPP say what an ablation does. They should not be used to evaluate or rank autoencoders (Chanin 2026, "Are
Sparse Autoencoder Benchmarks Reliable?", arXiv 2605.18229), which finds k-sparse probing as in sae-probes the most
reliable of SAEBench's metrics; `sparse_probing` is of that kind.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np

from unbraid.base.arguments import check_number, check_whole
from unbraid.base.repr import Shown
from unbraid.base.types import ArrayLike, BoolArray, FloatArray, IntArray, Kind
from unbraid.metrics._shared.inputs import check_inputs, check_matrix, standardised
from unbraid.metrics._shared.train_test_split import train_test_split
from unbraid.metrics._solvers.logistic import softmax_regression

LEAST_GAP = 1e-3  # between clean and biased accuracy: of less, nothing can be removed
FULL_COSINE, PART_COSINE, LEAST_PART, MOST_ABSORBING = 0.025, 0.1, 0.4, 3


@dataclass(frozen=True, eq=False, repr=False)
class SparseProbing(Shown):
    accuracy: FloatArray  # (n_ks, n_factors) on rows kept out
    guess: FloatArray  # (n_factors,) accuracy of the commonest level
    ks: IntArray  # (n_ks,)
    chosen: tuple[IntArray, ...]  # for each factor the codes, best first, as many as the largest k


@dataclass(frozen=True, eq=False, repr=False)
class Absorption(Shown):
    full: float  # share of rows in which no main code fires and another stands in
    fraction: float  # mean share of the probe's direction that others took over
    n_rows: float  # rows of the class that the probe finds


def sparse_probing(
    codes: ArrayLike,
    factors: ArrayLike,
    *,
    ks: Sequence[int] = (1, 2, 5),
    kinds: Sequence[Kind] | None = None,
    seed: int = 0,
    groups: ArrayLike | None = None,
) -> SparseProbing:
    """Accuracy of linear classifiers that are given the k codes whose means differ most between levels.

    Args:
        codes: (n_samples, n_codes) real.
        factors: (n_samples, n_factors) levels; continuous factors are cut into 20 bins of equal width.
        ks: how many codes, each 1 to n_codes.
        kinds: kind of each factor; see `unbraid.metrics`.
        seed: draws the rows (one in five) for testing.
        groups: (n_samples,) group of each row (trial, animal, video or session); no group is in two parts.

    Returns:
        SparseProbing. Codes are those of the largest difference, over levels, between the mean on a level and off it,
        by training rows. Compare `accuracy` with `guess`.

    Raises:
        ValueError: what every metric refuses; a k above the number of codes.

    Reference:
        Gurnee et al. 2023, "Finding Neurons in a Haystack"; Karvonen et al. 2025, "SAEBench".

    Example:
        >>> grid = np.tile(FactorSpace(("a", "b"), (2, 2), ("ordinal", "ordinal")).grid(), (25, 1))
        >>> sparse_probing(grid, grid, ks=[1]).accuracy.tolist()
        [[1.0, 1.0]]
    """
    rows = train_test_split(codes, factors, kinds, seed, groups=groups)
    n_codes = rows.inputs.n_codes
    counts = [check_whole(f"ks[{place}]", k, 1, n_codes, why="the number of codes") for place, k in enumerate(ks)]
    if not counts:
        raise ValueError("ks is empty; give at least one number of codes")
    known, judged = rows.train, rows.test
    accuracy, guess, chosen = np.zeros((len(counts), len(rows.sizes))), [], []
    for factor, size in enumerate(rows.sizes):
        levels = rows.levels.levels[:, factor]
        separation = np.zeros(n_codes)
        for level in np.unique(levels[known]):
            on = levels[known] == level
            if not on.all():
                separation = np.maximum(separation, np.abs(_difference(rows.codes[known], on)))
        best = np.argsort(-separation, kind="stable")[: max(counts)]
        for place, k in enumerate(counts):
            inputs = standardised(rows.codes[:, best[:k]])
            weights = softmax_regression(inputs[known], levels[known], size).weights
            predicted = (np.einsum("nd,dc->nc", inputs[judged], weights[:-1]) + weights[-1]).argmax(axis=1)
            accuracy[place, factor] = np.mean(predicted == levels[judged])
        guess.append(np.mean(levels[judged] == np.bincount(levels[known]).argmax()))
        chosen.append(best)
    return SparseProbing(accuracy, np.array(guess), np.array(counts), tuple(chosen))


def absorption(
    codes: ArrayLike, activations: ArrayLike, dictionary: ArrayLike, probe: ArrayLike, main: Sequence[int]
) -> Absorption:
    """Whether other codes stand in for the main codes of a feature in rows where these should fire.

    Args:
        codes: (n_rows, n_codes), 0 where a code does not fire; of rows of the class alone.
        activations: (n_rows, n_dimensions) what the codes encode, x.
        dictionary: (n_codes, n_dimensions) direction d_i of each code.
        probe: (n_dimensions,) direction w of the class in the activations; scaled to length 1.
        main: codes that are the feature's own, such as `sparse_probing` chooses.

    Returns:
        Absorption, of rows with x . w > 0, where p_i = z_i cos(d_i, w). `full`: no main code fires, and the largest p
        has a cosine of at least .025 and is .4 of x . w. `fraction`: with A the sum of the three largest p of other
        codes with a cosine of at least .1 and m that of the main codes, 0 if A < .4 x . w or m >= x . w, 1 if m <= 0,
        else a / (a + m), a = min(A, x . w - m). Both in [0, 1], lower is better; 0 where the probe finds no row.

    Raises:
        ValueError: shapes disagree, values not finite, a probe of zeros, or a main code that is not there.

    Reference:
        Chanin et al. 2024, "A is for Absorption"; Karvonen et al. 2025, "SAEBench".

    Example:
        >>> result = absorption([[0.0, 1.0]], [[1.0, 0.0]], [[1.0, 0.0], [1.0, 0.0]], [1.0, 0.0], main=[0])
        >>> result.full, result.fraction
        (1.0, 1.0)
    """
    z, x = check_matrix(codes, "codes", "n_codes"), check_matrix(activations, "activations", "n_dimensions")
    d = check_matrix(dictionary, "dictionary", "n_dimensions")
    w = _direction(probe, d.shape[1])
    if len(z) != len(x) or d.shape != (z.shape[1], x.shape[1]):
        raise ValueError(
            f"codes (n, D), activations (n, d) and dictionary (D, d) do not fit; got {z.shape}, {x.shape} and {d.shape}"
        )
    own = np.zeros(z.shape[1], dtype=bool)
    for code in main:
        own[check_whole("main", code, 0, z.shape[1] - 1, why="the last code")] = True
    lengths = np.linalg.norm(d, axis=1)
    cosines = d @ w / np.where(lengths > 0, lengths, 1.0)
    signal = x @ w
    z, signal = z[signal > 0], signal[signal > 0]
    if not len(z):
        return Absorption(0.0, 0.0, 0.0)
    parts = z * cosines
    other_parts = np.where(own, -np.inf, parts)
    top = other_parts.argmax(axis=1)
    largest = other_parts[np.arange(len(z)), top]
    silent = ~(z[:, own] > 0).any(axis=1)
    full = silent & (cosines[top] >= FULL_COSINE) & (largest >= LEAST_PART * signal)
    able = np.where(own | (cosines < PART_COSINE), 0.0, np.maximum(parts, 0.0))
    absorbed = np.sort(able, axis=1)[:, -MOST_ABSORBING:].sum(axis=1)
    main_part = parts[:, own].sum(axis=1)
    share = np.minimum(absorbed, signal - main_part)
    fraction = np.where(main_part <= 0, 1.0, share / np.where(main_part > 0, share + main_part, 1.0))
    fraction = np.where((absorbed < LEAST_PART * signal) | (main_part >= signal), 0.0, fraction)
    return Absorption(float(full.mean()), float(fraction.mean()), float(len(z)))


def codes_to_ablate(codes: ArrayLike, labels: ArrayLike, dictionary: ArrayLike, probe: ArrayLike) -> IntArray:
    """All codes, those first that push most along a probe on rows of a class.

    Args:
        codes: (n_rows, n_codes).
        labels: (n_rows,) whether a row is of the class.
        dictionary: (n_codes, n_dimensions).
        probe: (n_dimensions,) direction w of the class; scaled to length 1.

    Returns:
        (n_codes,) by (mean of the code on the class less that off it) times w . d_i, largest first.

    Raises:
        ValueError: shapes disagree, values not finite, or labels of one value.
    """
    z, d = check_matrix(codes, "codes", "n_codes"), check_matrix(dictionary, "dictionary", "n_dimensions")
    inputs = check_inputs(z, np.asarray(labels, dtype=float).reshape(-1, 1))
    on = inputs.factors[:, 0] > inputs.factors[:, 0].min()
    if len(d) != z.shape[1]:
        raise ValueError(f"dictionary must have a row for each code ({z.shape[1]}); got {len(d)}")
    return np.argsort(-_difference(z, on) * (d @ _direction(probe, d.shape[1])), kind="stable")


def spurious_correlation_removal(
    effect: Callable[[IntArray], float], order: Sequence[int] | IntArray, counts: Sequence[int], *, clean: float
) -> FloatArray:
    """SCR: the share of what a spurious cue costs that is won back by ablating the codes of the cue.

    Not for evaluating autoencoders (Chanin 2026); use `sparse_probing`.

    Args:
        effect: accuracy of the biased probe after these codes are ablated; also called with none.
        order: codes of the cue, those first that push it most, as `codes_to_ablate` gives them.
        counts: how many of them are ablated.
        clean: accuracy of a probe without the cue.

    Returns:
        (n_counts,) (ablated - biased) / (clean - biased), higher is better; 0 where the cue costs less than .001.

    Raises:
        ValueError: a count above the number of codes, or an accuracy outside [0, 1].

    Reference:
        Karvonen et al. 2024, "Evaluating Sparse Autoencoders on Targeted Concept Erasure Tasks"; SAEBench.
        Chanin 2026, "Are Sparse Autoencoder Benchmarks Reliable?", arXiv 2605.18229.

    Example:
        >>> spurious_correlation_removal(lambda ablated: 0.5 + 0.1 * len(ablated), [4, 2, 0], [1, 3], clean=0.9)
        array([0.25, 0.75])
    """
    check_number("clean", clean, least=0.0, most=1.0)
    order = np.asarray(order, dtype=np.int64)
    biased = _accuracy(effect(order[:0]))
    ablated = np.array([_accuracy(effect(order[: _count(place, k, order)])) for place, k in enumerate(counts)])
    return (ablated - biased) / (clean - biased) if clean - biased >= LEAST_GAP else np.zeros(len(ablated))


def targeted_probe_perturbation(
    effect: Callable[[IntArray], ArrayLike], orders: Sequence[Sequence[int] | IntArray], counts: Sequence[int]
) -> FloatArray:
    """TPP: how much more a class loses than the other classes do when its codes are ablated.

    Not for evaluating autoencoders (Chanin 2026); use `sparse_probing`.

    Args:
        effect: (n_classes,) accuracy of the probe of each class after these codes are ablated; also called with none.
        orders: for each class its codes, those first that push it most.
        counts: how many of them are ablated.

    Returns:
        (n_counts,) mean over classes of the own loss of accuracy less the mean loss of the others; higher is better.

    Raises:
        ValueError: fewer than two classes, or a count above the number of codes.

    Reference:
        Karvonen et al. 2024, "Evaluating Sparse Autoencoders on Targeted Concept Erasure Tasks"; SAEBench.
        Chanin 2026, "Are Sparse Autoencoder Benchmarks Reliable?", arXiv 2605.18229.
    """
    if len(orders) < 2:
        raise ValueError(f"orders must be for at least two classes; got {len(orders)}")
    ordered = [np.asarray(order, dtype=np.int64) for order in orders]
    before, own = np.asarray(effect(ordered[0][:0]), dtype=float), np.eye(len(orders), dtype=bool)
    if before.shape != (len(orders),):
        raise ValueError(f"effect must give one accuracy per class ({len(orders)}); got shape {before.shape}")
    effects = []
    for place, k in enumerate(counts):
        drops = np.stack([before - np.asarray(effect(order[: _count(place, k, order)])) for order in ordered])
        effects.append(drops[own].mean() - drops[~own].mean())
    return np.array(effects)


def _difference(codes: FloatArray, on: BoolArray) -> FloatArray:
    """(n_codes,) mean on some rows less that on the others."""
    return codes[on].mean(axis=0) - codes[~on].mean(axis=0)


def _direction(probe: ArrayLike, n_dimensions: int) -> FloatArray:
    w = check_matrix(np.asarray(probe, dtype=float).reshape(1, -1), "probe", "n_dimensions")[0]
    if len(w) != n_dimensions or not w.any():
        raise ValueError(f"probe must be a direction of {n_dimensions} dimensions; got {len(w)} of them, or zeros")
    return w / np.linalg.norm(w)


def _count(place: int, k: int, order: IntArray) -> int:
    return check_whole(f"counts[{place}]", k, 0, len(order), why="the number of codes")


def _accuracy(value: float) -> float:
    return check_number("what effect gives", value, least=0.0, most=1.0)
