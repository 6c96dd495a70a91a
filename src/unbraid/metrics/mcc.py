"""Mean correlation coefficient (MCC)."""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from typing import Literal, TypeAlias, get_args

import numpy as np

from unbraid.base.arguments import check_choice
from unbraid.base.counted import counted
from unbraid.base.repr import Shown
from unbraid.base.types import ArrayLike, FloatArray, IntArray, Kind
from unbraid.metrics._shared.alignment import align, by_content, content_keys
from unbraid.metrics._shared.bins import places
from unbraid.metrics._shared.chance import Noise, drawn
from unbraid.metrics._shared.inputs import Inputs, check_inputs, mean_and_scale, standardised
from unbraid.metrics._shared.metric import PAIRS_AND_BIAS, Metric
from unbraid.metrics._shared.regression import (
    Blocks,
    as_blocks,
    by_block,
    explained,
    least_squares,
    notes_on_blocks,
    notes_on_parts,
)
from unbraid.metrics._shared.sharing import shared
from unbraid.metrics._shared.train_valid_test import train_valid_test

NULL_DRAWS = 100

Correlation: TypeAlias = Literal["pearson", "spearman"]
Fit: TypeAlias = Literal["halves", "all"]
Unmatched: TypeAlias = Literal["zero", "drop"]
Alignment: TypeAlias = Literal["permutation", "linear", "cca"]


@dataclass(frozen=True, eq=False, repr=False)
class MCC(Shown):
    score: float
    ceiling: float  # what one code for each factor could score at most
    per_factor: FloatArray  # (n_factors,)
    correlation: FloatArray  # (n_codes, n_factors) over all rows of `codes`
    alignment: IntArray  # (n_factors,) code matched with each factor by `correlation`, -1 without one
    notes: tuple[str, ...] = ()
    mean_over: str = ""  # how many factors count, where not all; see `unbraid.compare`


def mcc(
    codes: ArrayLike,
    factors: ArrayLike,
    *,
    kinds: Sequence[Kind] | None = None,
    seed: int = 0,
    groups: ArrayLike | None = None,
    correlation: Correlation = "pearson",
    fit: Fit = "halves",
    unmatched: Unmatched = "zero",
    alignment: Alignment = "permutation",
    sizes: Sequence[int] | None = None,
    test_codes: ArrayLike | None = None,
    test_factors: ArrayLike | None = None,
) -> MCC:
    """Mean correlation of each factor with a code of its own.

    Codes and factors are matched one to one so that the sum of absolute correlations is largest; of matchings
    as good as each other what codes and factors hold picks one, and not the order of columns. An ordered factor
    is read as a number. A cyclic one is read as its cosine and sine, a categorical one as an indicator of each level;
    what counts is the root of R^2 = 1 - errors / variances, both summed over these columns, or 0 where R^2 is negative.

    Args:
        codes: (n_samples, n_codes) real. Posterior means unless stated otherwise.
        factors: (n_samples, n_factors) levels or real values.
        kinds: kind of each factor; see `unbraid.metrics`.
        seed: draws the halves.
        groups: (n_samples,) group of each row (trial, animal, video or session); no group is in two parts.
        correlation: "pearson", or "spearman" for that of average ranks, on which no monotone change of a code or an
            ordered factor has a hold.
        fit: "halves" takes matching and signs from one half of the rows and the signed correlation from the other,
            both ways. "all" matches and judges on the same rows, as published: then noise scores the more, the fewer
            the rows and the more the codes (a note says how much).
        unmatched: with fewer codes than factors some have none. "zero" counts these as 0, "drop" leaves them out.
        alignment: "permutation", or "linear" for the correlation of each factor with its prediction from all codes by
            least squares with an intercept ("weak" MCC): blind to rotation. "cca": the canonical correlations of codes
            and factors, as many as the smaller number of columns, from the largest on: they tell whether the spans
            agree, and no factor has one of its own (`per_factor` is in that order, 0 where there are no more).
        sizes: number of levels of each factor, around which cyclic ones wrap; default the highest present + 1. Where
            the last level is the first again, one less than there are (`FactorSpace.turns`).
        test_codes: (n, n_codes) rows to judge on; matching and signs are then taken from all rows of `codes`.
        test_factors: (n, n_factors) their factors.

    Returns:
        MCC. `score` in [-1, 1], higher is better, mean of `per_factor`; with "drop" their sum over the number of those
        that have a code, which may be others in each half. A constant code correlates with nothing.
        Chance: 0 for ordered factors by halves, see `mcc_of_noise`. `ceiling`: 1 for ordered factors; a single code
        cannot hold a circle (.71) or the L indicators of equal classes (the root of 1 / (L - 1)), nor D codes more
        than D factors. Not invariant to rotation by permutation.

    Raises:
        ValueError: what every metric refuses, an unknown option, or test rows beside `fit="all"`.

    Reference:
        Khemakhem et al. 2020, "ICE-BeeM: Identifiable Conditional Energy-Based Deep Models Based on Nonlinear ICA",
        experiments, after Hyvärinen & Morioka 2016. Differs from both: `fit`, `unmatched` and factors without order.

    Example:
        >>> grid = FactorSpace(("a", "b"), (8, 9), ("ordinal", "ordinal")).grid()
        >>> round(mcc(-grid[:, ::-1], grid).score, 12)
        1.0
    """
    for name, value, choices in (
        ("correlation", correlation, get_args(Correlation)),
        ("fit", fit, get_args(Fit)),
        ("unmatched", unmatched, get_args(Unmatched)),
        ("alignment", alignment, get_args(Alignment)),
    ):
        check_choice(name, value, choices)
    if fit == "all" and test_codes is not None:
        raise ValueError("fit='all' scores the rows of codes; give either fit='all' or test_codes")
    inputs = check_inputs(codes, factors, kinds, seed, groups=groups)
    split = train_valid_test(inputs, seed, test_codes, test_factors, (0.5, 0.5))
    blocks, rows = as_blocks(split.inputs, sizes), np.arange(inputs.n_samples)
    splits = (
        [(split.train, split.test)]
        if test_codes is not None
        else [(split.train, split.test), (split.test, split.train)]
    )
    order = _own_order(split.inputs, correlation)
    judge = {"permutation": partial(_by_one_code, order), "linear": _by_all_codes, "cca": _by_pairs}[alignment]
    if alignment == "cca" and not all(blocks.single):
        factor = blocks.single.index(False)
        raise ValueError(f"alignment='cca' reads factors as one number each; factor {factor} is {inputs.kinds[factor]}")
    by_split = [
        judge(split.inputs, blocks, known, judged, correlation)
        for known, judged in ([(rows, rows)] if fit == "all" else splits)
    ]
    per_factor = np.mean(by_split, axis=0)
    association = _associations(split.inputs, blocks, rows, correlation)
    matched = align(np.abs(association), order)
    n_unmatched = 0 if alignment == "linear" else max(inputs.n_factors - inputs.n_codes, 0)
    reach = np.sqrt([variances.max() for variances in _variances(blocks, rows)])
    n_matched = inputs.n_factors - n_unmatched
    how = f"without a code, {'counted as 0' if unmatched == 'zero' else 'left out'}"
    sizes_of = f"{counted(inputs.n_codes, 'code')} for {counted(inputs.n_factors, 'factor')}"
    best = np.sort(reach)[::-1][:n_matched]
    # Each half may leave out other factors, as 0.
    n_counted = n_matched if unmatched == "drop" else inputs.n_factors
    return MCC(
        score=float(per_factor.sum() / n_counted),
        ceiling=float(best.sum() / n_counted) if alignment != "linear" else 1.0,
        per_factor=per_factor,
        correlation=association,
        alignment=matched,
        notes=(
            *notes_on_blocks(inputs),
            *((f"{sizes_of}: {n_unmatched} of them {how}",) if n_unmatched else ()),
            *(notes_on_parts(blocks, splits) if fit == "halves" else _notes_on_fit(inputs, sizes, alignment)),
        ),
        mean_over="" if n_counted == inputs.n_factors else f"{n_counted} of {inputs.n_factors} factors",
    )


def mcc_of_noise(inputs: Inputs, sizes: Sequence[int] | None = None, fit: Fit = "halves") -> Noise:
    """0 for ordered factors, a little above for others on few rows."""
    # A correlation of noise is close to a normal variable of variance 1 / (n - 1), also with each principal component
    # of a block; a mean is off by a normal variable of variance 1 / n.
    blocks, rng = as_blocks(inputs, sizes), np.random.default_rng(0)
    n_rows = inputs.n_samples if fit == "all" else inputs.n_samples // 2
    parts = _variances(blocks, np.arange(inputs.n_samples))
    owner, roots = np.repeat(np.arange(len(parts)), [len(part) for part in parts]), np.sqrt(np.concatenate(parts))
    single, shape = np.array(blocks.single), (2, inputs.n_codes, len(roots))

    def judged(known: FloatArray, other: FloatArray, shift: FloatArray) -> float:
        matched = align(np.minimum(np.sqrt(by_block(known**2, owner)), 1.0))
        own = np.flatnonzero(matched >= 0)
        if fit == "all":
            return np.minimum(np.sqrt(by_block(known**2, owner)), 1.0)[matched[own], own].sum() / len(matched)
        signed = by_block(np.sign(known) * other, owner)
        corrected = np.sqrt(np.maximum(by_block(2 * known * other - known**2, owner) - shift, 0.0))
        return np.clip(np.where(single, signed, corrected)[matched[own], own], -1.0, 1.0).sum() / len(matched)

    scores = []
    for _ in range(NULL_DRAWS):
        one, other = rng.standard_normal(shape) * roots / np.sqrt(max(n_rows - 1, 1))
        shift = by_block((roots * rng.standard_normal(len(roots))) ** 2 * 2 / max(n_rows, 1), owner)
        draws = [(one, other)] if fit == "all" else [(one, other), (other, one)]
        scores.append(np.mean([judged(*way, shift) for way in draws]))
    return drawn(scores)


def _own_order(inputs: Inputs, correlation: Correlation) -> tuple[IntArray, IntArray]:
    """Of codes and factors, by what they hold: of matchings as good as each other that decides, and no column."""
    rows, ranked = np.arange(inputs.n_samples), correlation == "spearman"
    codes, factors = np.arange(inputs.n_codes), np.arange(inputs.n_factors)
    unordered = np.flatnonzero([kind in ("categorical", "cyclic") for kind in inputs.kinds])
    of_factors = content_keys(inputs.factors, rows, factors, classes=unordered, ranked=ranked)
    of_codes = content_keys(inputs.stored, rows, codes, ranked=ranked)
    return by_content(of_codes), by_content(list(zip(inputs.kinds, of_factors, strict=True)))


def _codes_of(codes: FloatArray, rows: IntArray, correlation: Correlation) -> FloatArray:
    """These rows; by Spearman their places, as shares of the rows: a mirrored code has 1 less these, in both halves."""
    return codes[rows] if correlation == "pearson" else places(codes[rows]) / len(rows)


def _columns_of(blocks: Blocks, rows: IntArray, correlation: Correlation) -> FloatArray:
    """These rows of the factors' columns; by Spearman the ranks of ordered factors, as shares of the rows."""
    columns, ordered = blocks.columns[rows], np.array(blocks.single)[blocks.owner]
    if correlation == "spearman":
        columns[:, ordered] = _codes_of(columns[:, ordered], np.arange(len(rows)), correlation)
    return columns


@shared
def _associations(inputs: Inputs, blocks: Blocks, rows: IntArray, correlation: Correlation) -> FloatArray:
    """`associations` on these rows, with some codes at a time in memory."""
    columns = _columns_of(blocks, rows, correlation)
    parts = [
        associations(_codes_of(values, rows, correlation), columns, blocks) for _, values in inputs.column_blocks()
    ]
    return np.concatenate(parts)


def associations(codes: FloatArray, columns: FloatArray, blocks: Blocks) -> FloatArray:
    """(n_codes, n_factors) correlations with single columns, and the root of R^2 of blocks, on the rows given."""
    # Sums over samples by einsum: those of a matrix product would depend on the number of threads.
    return by_shares(np.einsum("nd,nq->dq", standardised(codes), in_shares(columns, blocks)) / len(codes), blocks)


def in_shares(columns: FloatArray, blocks: Blocks) -> FloatArray:
    """Columns less their means, over the spread of their block."""
    centred = columns - columns.mean(axis=0)
    variances = by_block((centred**2).mean(axis=0), blocks.owner)
    scale = np.where(variances > 1e-24, np.sqrt(variances), np.inf)[blocks.owner]
    return centred / scale


def by_shares(shares: FloatArray, blocks: Blocks) -> FloatArray:
    """`associations` from the mean products (n_codes, n_columns) of standardised codes with `in_shares`."""
    signed = by_block(shares, blocks.owner)
    return np.clip(np.where(blocks.single, signed, np.sqrt(by_block(shares**2, blocks.owner))), -1.0, 1.0)


def _by_one_code(
    order: tuple[IntArray, IntArray],
    inputs: Inputs,
    blocks: Blocks,
    known: IntArray,
    judged: IntArray,
    correlation: Correlation,
) -> FloatArray:
    """(n_factors,) by a code of its own, matched on one part of the rows and judged on another."""
    association = _associations(inputs, blocks, known, correlation)
    elsewhere = _associations(inputs, blocks, judged, correlation)
    from_columns, to_columns = (_columns_of(blocks, rows, correlation) for rows in (known, judged))
    scores = np.zeros(len(blocks.single))
    for factor, code in enumerate(align(np.abs(association), order)):
        if code < 0:
            continue
        if blocks.single[factor]:
            scores[factor] = np.sign(np.round(association[code, factor], 12)) * elsewhere[code, factor]
            continue
        own = blocks.owner == factor
        from_code, to_code = (_codes_of(inputs.code(code)[:, None], rows, correlation) for rows in (known, judged))
        predicted = least_squares(from_code, from_columns[:, own], to_code)
        scores[factor] = _root(explained(predicted, to_columns[:, own], blocks.owner[own] - factor))[0]
    return scores


def _by_all_codes(
    inputs: Inputs, blocks: Blocks, known: IntArray, judged: IntArray, correlation: Correlation
) -> FloatArray:
    """(n_factors,) by the best line through all codes, fitted on one part of the rows and judged on another."""
    predicted = least_squares(inputs.codes[known], blocks.columns[known], inputs.codes[judged])
    scores = _root(explained(predicted, blocks.columns[judged], blocks.owner))
    for factor in np.flatnonzero(blocks.single):
        own = Blocks(blocks.columns[judged][:, blocks.owner == factor], np.zeros(1, dtype=int))
        rows = np.arange(len(judged))
        ranked = _codes_of(predicted[:, blocks.owner == factor], rows, correlation)
        scores[factor] = associations(ranked, _columns_of(own, rows, correlation), own)[0, 0]
    return scores


def _by_pairs(
    inputs: Inputs, blocks: Blocks, known: IntArray, judged: IntArray, correlation: Correlation
) -> FloatArray:
    """(n_factors,) correlations of canonical pairs, found on one part of the rows and judged on another."""
    turned = []
    codes = [_codes_of(inputs.codes, rows, correlation) for rows in (known, judged)]
    columns = [_columns_of(blocks, rows, correlation) for rows in (known, judged)]
    for seen, test in (codes, columns):
        mean, scale = mean_and_scale(seen)
        left, sizes, right = np.linalg.svd((seen - mean) / scale, full_matrices=False)
        significant = sizes > 1e-9 * sizes.max()
        turned.append((left[:, significant], (test - mean) / scale @ (right[significant].T / sizes[significant])))
    (z, z_test), (v, v_test) = turned
    ours, strengths, theirs = np.linalg.svd(z.T @ v, full_matrices=False)
    scores = np.zeros(len(blocks.single))
    for pair in range(len(strengths)):
        one, other = standardised(z_test @ ours[:, [pair]]), standardised(v_test @ theirs[[pair]].T)
        scores[pair] = float((one * other).mean())
    return scores


def _root(squared: FloatArray) -> FloatArray:
    return np.sqrt(np.maximum(squared, 0.0))


def _variances(blocks: Blocks, rows: IntArray) -> list[FloatArray]:
    """For each factor the share of each principal component of its block in the variance."""
    shares = []
    for factor in range(len(blocks.single)):
        columns = blocks.columns[rows][:, blocks.owner == factor]
        variances = np.maximum(np.linalg.eigvalsh(np.atleast_2d(np.cov(columns.T, bias=True))), 0.0)
        shares.append(variances / variances.sum())
    return shares


def _notes_on_fit(inputs: Inputs, sizes: Sequence[int] | None, alignment: Alignment) -> tuple[str, ...]:
    if alignment != "permutation":
        return ("fitted and scored on the same rows",)
    noise = mcc_of_noise(inputs, sizes, "all")
    return (f"matched and scored on the same rows: noise would score {noise.score:.2f}",)


METRIC = Metric(
    mcc,
    title="Mean correlation coefficient",
    question="identified",
    claims={"score": ("alignment",)},
    range=(-1.0, 1.0),
    chance=mcc_of_noise,
    summary="How well each factor correlates with a code of its own, on rows that were not used for matching.",
    limitations="Does not see other codes' information. Linear: no single code fully predicts an unordered factor.",
    source="Khemakhem et al. 2020 (ICE-BeeM), experiments; Hyvärinen & Morioka 2016",
    stochastic=True,
    version=6,
    interval=PAIRS_AND_BIAS,
    cites=("khemakhem2020ice", "hyvarinen2016unsupervised"),
    formula=(
        r"\mathrm{MCC} = \frac{1}{K} \sum_{k=1}^{K} s_k \, r'_{\pi(k) k}, \qquad "
        r"\pi = \arg\max_{\pi \text{ one to one}} \sum_k |r_{\pi(k) k}|, \qquad s_k = \mathrm{sign} \, r_{\pi(k) k}",
        r"$r_{jk}$ is the correlation of $z_j$ and $v_k$ on one half of the rows, $r'_{jk}$ that on the other "
        r"half; the "
        r"halves change places, and the score is the mean of both.",
    ),
)
