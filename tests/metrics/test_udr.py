"""UDR: eq. 2 by plain loops, the regressions against scikit-learn, constructed populations, and the laws it obeys."""

from importlib import import_module
from itertools import count
from typing import Any

import numpy as np
import pytest
from scipy.stats import spearmanr

from unbraid import score
from unbraid.base.types import FloatArray
from unbraid.metrics import NotDefined, udr
from unbraid.metrics._shared import udr_pairs as _pairs
from unbraid.metrics._shared.udr_pairs import agreement
from unbraid.metrics._solvers.group_lasso import cross_validated
from unbraid.metrics.udr import heavy_note, rotated_udr

N = 600
BASE = np.random.default_rng(0).standard_normal((N, 4))


def rotation(seed: int, size: int = 4) -> FloatArray:
    return np.linalg.qr(np.random.default_rng(seed).standard_normal((size, size)))[0]


def standard(codes: FloatArray) -> FloatArray:
    return (codes - codes.mean(axis=0)) / codes.std(axis=0)


def eq_2(similarity: FloatArray, first: list[bool], second: list[bool]) -> float:
    """Plain loops straight from the equation, over all latents, with its indicators."""
    total = 0.0
    for b in range(similarity.shape[1]):
        column = [similarity[a, b] for a in range(similarity.shape[0])]
        if second[b] and sum(column) > 0:
            total += max(column) ** 2 / sum(column)
    for a in range(similarity.shape[0]):
        row = [similarity[a, b] for b in range(similarity.shape[1])]
        if first[a] and sum(row) > 0:
            total += max(row) ** 2 / sum(row)
    return total / (sum(first) + sum(second))


# What the regressions are


def moments(inputs: FloatArray, targets: FloatArray) -> tuple[FloatArray, ...]:
    folds = np.array_split(np.arange(len(inputs)), 5)
    return (
        np.stack([inputs[f].T @ inputs[f] for f in folds]),
        np.stack([inputs[f].T @ targets[f] for f in folds]),
        np.array([(targets[f] ** 2).sum() for f in folds]),
        np.stack([inputs[f].sum(axis=0) for f in folds]),
        np.stack([targets[f].sum(axis=0) for f in folds]),
        np.array([float(len(f)) for f in folds]),
    )


NOISE = np.random.default_rng(1).standard_normal((203, 4))
INPUTS = np.random.default_rng(2).standard_normal((203, 4)) + [0.0, 0.3, 0.0, 2.0]
CORRELATED = INPUTS @ np.array([[1, 0.9, 0.8, 0], [0, 0.3, 0.2, 0], [0, 0, 0.2, 0.9], [0, 0, 0, 0.4]])
CASES = {
    "rotated": (INPUTS, INPUTS @ rotation(0) + 0.5 * NOISE),
    "sparse": (INPUTS, np.outer(INPUTS[:, 0], [1.0, -0.5, 0.0]) + NOISE[:, :3]),
    "unrelated": (INPUTS, NOISE),
    "correlated": (CORRELATED, INPUTS @ rotation(1) + 0.2 * NOISE),
    "one target": (CORRELATED, INPUTS[:, :1] + NOISE[:, :1]),
    "one input": (INPUTS[:, :1], INPUTS[:, :2] + NOISE[:, :2]),
    "dead input": (INPUTS * [1, 0, 1, 1], INPUTS + NOISE),
}


@pytest.mark.lengthy  # scikit-learn takes seconds where inputs are correlated
@pytest.mark.parametrize("case", sorted(CASES))
def test_cross_validated_multi_task_lasso_is_that_of_scikit_learn(case: str) -> None:
    """MultiTaskLassoCV with its defaults (100 penalties, 5 folds in order), solved more tightly; folds are unequal."""
    from sklearn.linear_model import MultiTaskLassoCV

    inputs, targets = CASES[case]
    reference = MultiTaskLassoCV(tol=1e-11, max_iter=100_000, cv=5).fit(inputs, targets)
    weights, penalty, converged = cross_validated(*moments(inputs, targets))
    assert converged
    assert penalty == pytest.approx(reference.alpha_, rel=1e-9)
    np.testing.assert_allclose(weights, reference.coef_.T, atol=1e-6)


@pytest.mark.parametrize("seed", [0, 1])
def test_pairs_under_cv_are_those_of_scikit_learn(seed: int) -> None:
    """Targets are the latents of i, inputs those of j, standardised, rows in the drawn order."""
    from sklearn.linear_model import MultiTaskLassoCV

    models = [BASE, BASE[:, :3] @ rotation(4, 3) + 0.3 * np.random.default_rng(9).standard_normal((N, 3))]
    order = np.random.default_rng(seed).permutation(N)
    result = udr(models, seed=seed)
    for i, j in ((0, 1), (1, 0)):
        inputs, targets = standard(models[j])[order], standard(models[i])[order]
        fit = MultiTaskLassoCV(tol=1e-11, max_iter=100_000, cv=5).fit(inputs, targets)
        similarity = np.abs(fit.coef_)  # rows are targets
        expected = eq_2(similarity, [True] * len(similarity), [True] * similarity.shape[1])
        assert result.pairs[i, j] == pytest.approx(expected, abs=1e-6)
        assert result.penalties[i, j] == pytest.approx(fit.alpha_, rel=1e-9)
    assert result.pairs[0, 1] != pytest.approx(result.pairs[1, 0], abs=1e-3)


@pytest.mark.parametrize("alpha", [0.1, 0.01])
def test_a_number_for_alpha_is_one_lasso_per_target(alpha: float) -> None:
    from sklearn.linear_model import Lasso

    models = [BASE, BASE[:, :3] @ rotation(4, 3)]
    result = udr(models, alpha=alpha)
    for i, j in ((0, 1), (1, 0)):
        fit = Lasso(alpha=alpha, tol=1e-12, max_iter=100_000).fit(standard(models[j]), standard(models[i]))
        similarity = np.abs(fit.coef_)
        expected = eq_2(similarity, [True] * similarity.shape[0], [True] * similarity.shape[1])
        assert result.pairs[i, j] == pytest.approx(expected, abs=1e-8)


def test_one_who_stops_is_heard_between_blocks_and_goes_on_from_there(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(_pairs, "TARGETS_AT_ONCE", 2)
    models, saved = population(), []

    def stop(found: _pairs.Pairs) -> None:
        saved.append(found)
        if len(saved) == 2:
            raise KeyboardInterrupt

    whole = udr(models, keep_matrices=True)
    with pytest.raises(KeyboardInterrupt):
        udr(models, save=stop)
    known = saved[-1]
    there = np.isfinite(known.values)
    assert 0 < there.sum() < there.size - len(models)
    wanted = np.eye(len(models), k=1, dtype=bool)  # matrices, for which pairs are compared once more
    first = tuple(np.argwhere(there & ~wanted)[0])  # blocks are done in any order
    known.values[first] += 1.0  # to be seen again: what is known is not compared once more
    again = udr(models, known=known, keep_matrices=wanted)
    off = np.abs(again.pairs - whole.pairs)
    assert np.nanmax(off) == pytest.approx(1.0)
    assert off[first] == np.nanmax(off)
    assert (off > 1e-9).sum() == 1
    assert list(again.matrices) == [(i, i + 1) for i in range(len(models) - 1)]
    for pair, matrix in again.matrices.items():
        np.testing.assert_allclose(matrix, whole.matrices[pair], atol=1e-6)
    with pytest.raises(ValueError, match="known must hold the pairs of 2 models; it has those of"):
        udr(models[:2], known=known)


@pytest.mark.parametrize("arguments", [{}, {"alpha": 0.1}, {"similarity": "spearman"}])
def test_columns_that_do_not_fit_into_memory_come_back_from_a_file(
    arguments: dict, monkeypatch: pytest.MonkeyPatch
) -> None:
    models = [*population(), BASE[:, :1]]
    whole = udr(models, **arguments)
    monkeypatch.setattr(_pairs, "IN_MEMORY", 0)
    monkeypatch.setattr(_pairs, "TARGETS_AT_ONCE", 3)
    monkeypatch.setattr(_pairs, "OTHERS_AT_ONCE", 2)
    np.testing.assert_allclose(udr(models, **arguments).pairs, whole.pairs, atol=1e-9)


def test_spearman_pairs_are_those_of_scipy_and_symmetric() -> None:
    models = [np.rint(2 * BASE), np.exp(BASE[:, :3] @ rotation(4, 3))]  # ties, and a monotone map
    result = udr(models, similarity="spearman")
    similarity = np.abs(spearmanr(models[0], models[1]).statistic[:4, 4:])
    assert result.pairs[0, 1] == pytest.approx(eq_2(similarity, [True] * 4, [True] * 3), abs=1e-12)
    assert result.pairs[0, 1] == result.pairs[1, 0]


# How a matrix becomes a score


@pytest.mark.parametrize("n_comparisons", [None, 2])
def test_spearman_compares_each_two_models_once(n_comparisons: int | None, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(_pairs, "TARGETS_AT_ONCE", 3)
    monkeypatch.setattr(_pairs, "OTHERS_AT_ONCE", 2)
    compared, compare = [], _pairs._compare

    def counted(task: Any, stopped: Any) -> Any:
        targets, others, todo, _ = task
        compared.extend((targets.models[i], others.models[j]) for i, j in np.argwhere(todo))
        return compare(task, stopped)

    monkeypatch.setattr(_pairs, "_compare", counted)
    rng, told = np.random.default_rng(4), []
    models = [BASE @ rotation(seed) + 0.3 * rng.standard_normal((N, 4)) for seed in range(7)]
    models[5] = models[5][:, :2]
    result = udr(
        models, similarity="spearman", n_comparisons=n_comparisons, keep_matrices=True,
        progress=lambda *each: told.append(each),
    )  # fmt: skip
    assert len({frozenset(pair) for pair in compared}) == len(compared), "none of them twice"
    wanted = np.isfinite(result.pairs)
    assert wanted.sum() == (42 if n_comparisons is None else 14)
    assert len(compared) == np.triu(wanted | wanted.T).sum()
    assert set(result.matrices) == {(int(i), int(j)) for i, j in np.argwhere(wanted)}
    for (i, j), matrix in result.matrices.items():
        expected = np.abs(spearmanr(models[i], models[j]).statistic[: models[i].shape[1], models[i].shape[1] :])
        assert matrix == pytest.approx(expected, abs=1e-6)
        of_all = [True] * models[i].shape[1], [True] * models[j].shape[1]
        assert result.pairs[i, j] == pytest.approx(eq_2(expected, *of_all))
        assert result.largest[i, j] == pytest.approx(expected.max())
    assert told[-1] == (7, 7)


def test_agreement_by_hand() -> None:
    """R = [[.8, .2, 0], [0, .5, .5]]. Columns: .64/.8, .25/.7, .25/.5; rows: .64/1, .25/1; over 2 + 3.

    dlib: the mean over three columns and the mean over two rows, averaged.
    """
    similarity = np.array([[0.8, 0.2, 0.0], [0.0, 0.5, 0.5]])
    columns, rows = [0.8, 0.25 / 0.7, 0.5], [0.64, 0.25]
    assert agreement(similarity, True) == pytest.approx((sum(columns) + sum(rows)) / 5)
    assert agreement(similarity, False) == pytest.approx((np.mean(columns) + np.mean(rows)) / 2)


def test_agreement_of_perfect_matches_and_of_empty_rows() -> None:
    assert agreement(np.eye(4), True) == 1.0
    assert agreement(np.zeros((3, 2)), True) == 0.0
    assert agreement(np.zeros((3, 2)), False) == 0.0
    assert agreement(np.array([[1.0, 0.0], [0.0, 0.0]]), True) == 0.5
    assert agreement(np.full((2, 2), 0.5), True) == 0.25  # all alike: half of the half


def test_random_matrices_agree_with_plain_loops() -> None:
    rng = np.random.default_rng(0)
    for shape in ((1, 1), (3, 5), (6, 2)):
        similarity = rng.random(shape)
        assert agreement(similarity, True) == pytest.approx(eq_2(similarity, [True] * shape[0], [True] * shape[1]))


@pytest.mark.parametrize("arguments", [{}, {"alpha": 0.1}])
def test_matrices_are_kept_on_request_and_make_the_pairs(arguments: dict) -> None:
    models = [BASE, BASE[:, :3] @ rotation(4, 3), np.column_stack([BASE, BASE[:, 0]])]
    kl = [[1.0] * 4, [1.0] * 3, [1.0, 0.0, 1.0, 1.0, 1.0]]
    result = udr(models, kl=kl, keep_matrices=True, **arguments)
    assert sorted(result.matrices) == [(0, 1), (0, 2), (1, 0), (1, 2), (2, 0), (2, 1)]
    for (i, j), matrix in result.matrices.items():
        assert matrix.shape == ([4, 3, 4][i], [4, 3, 4][j])
        expected = eq_2(matrix.astype(float), [True] * matrix.shape[0], [True] * matrix.shape[1])
        assert result.pairs[i, j] == pytest.approx(expected, abs=1e-6)
    assert not udr(models, kl=kl, **arguments).matrices


def test_matrices_of_a_model_without_informative_latents_are_empty() -> None:
    result = udr([BASE, BASE], kl=[[1.0] * 4, [0.0] * 4], keep_matrices=True)
    assert result.matrices[0, 1].shape == (4, 0)
    assert result.matrices[1, 0].shape == (0, 4)


# Uninformative latents


@pytest.mark.parametrize("similarity", ["lasso", "spearman"])
@pytest.mark.parametrize("alpha", ["cv", 0.1])
def test_uninformative_latents_are_left_out_of_the_regression_and_of_the_sums(similarity: Any, alpha: Any) -> None:
    """A latent that mixes the others would take their weight, were it only left out of the sums."""
    first = np.column_stack([BASE, BASE @ [1.0, 1.0, 1.0, 1.0]])
    second = np.column_stack([BASE[:, :1] - BASE[:, 1:2], BASE[:, ::-1]])
    kl = [[1.0, 2.0, 0.5, 0.02, 0.01], [0.001, 3.0, 3.0, 3.0, 3.0]]  # exactly .01 is not above the threshold
    result = udr([first, second], kl=kl, similarity=similarity, alpha=alpha)
    alone = udr([BASE, BASE[:, ::-1]], similarity=similarity, alpha=alpha)
    np.testing.assert_allclose(result.pairs, alone.pairs, atol=1e-12)
    assert result.informative.tolist() == [4, 4]
    everything = udr([first, second], similarity=similarity, alpha=alpha)
    assert everything.scores[0] < result.scores[0] - 0.1


def test_threshold_decides_what_is_informative() -> None:
    kl = [[1.0, 1.0, 1.0, 0.3]] * 2
    assert udr([BASE, BASE], kl=kl, kl_threshold=0.5).informative.tolist() == [3, 3]
    assert udr([BASE, BASE], kl=kl).informative.tolist() == [4, 4]


@pytest.mark.parametrize("arguments", [{}, {"alpha": 0.1}, {"similarity": "spearman"}, {"aggregate": "dlib"}])
def test_dead_latents_and_models_without_informative_ones_are_never_nan(arguments: dict) -> None:
    dead = BASE * [1.0, 0.0, 1.0, 0.0] + 0.1
    models = [BASE, dead, np.zeros_like(BASE), BASE[:, :1]]
    kl = [[1.0] * 4, [1.0] * 4, [1.0] * 4, [0.0]]
    result = udr(models, kl=kl, **arguments)
    off = ~np.eye(4, dtype=bool)
    assert np.isfinite(result.scores).all()
    assert np.isfinite(result.pairs[off]).all()
    assert result.scores[2] == result.scores[3] == 0
    assert result.notes == ("no informative latent, and so a score of 0: model 3",)


@pytest.mark.parametrize(
    ("arguments", "constant"),
    [({}, 0.3), ({"alpha": 0.1}, 0.0), ({"similarity": "spearman"}, 1e20), ({"aggregate": "dlib"}, 1e20)],
)
def test_without_kl_a_constant_code_changes_no_score(arguments: dict, constant: float) -> None:
    """It is no latent to be matched: eq. 2 over the codes that vary, as if it were not there."""
    models = population()[:3]
    longer = [np.column_stack([model[:, :place], np.full(N, constant), model[:, place:]]) for place, model in
              enumerate(models)]  # fmt: skip
    result = udr(longer, **arguments)
    np.testing.assert_array_equal(result.pairs, udr(models, **arguments).pairs)
    assert result.informative.tolist() == [4, 4, 4]


# Populations


def test_a_subset_is_not_punished_for_what_it_has() -> None:
    """Three latents matched one to one with three of four: (3 + 3) / (3 + 4), up to the smallest penalty."""
    assert udr([BASE[:, :3], BASE]).pairs[1, 0] == pytest.approx(6 / 7, abs=0.06)
    orthogonal = np.kron(np.array([[1, 1, 1, 1], [1, -1, 1, -1], [1, 1, -1, -1], [1, -1, -1, 1]]).T, np.ones((5, 1)))
    codes = np.tile(orthogonal[:, 1:], (6, 1))
    assert udr([codes[:, :2], codes], similarity="spearman").scores == pytest.approx([4 / 5, 4 / 5])


def test_a_perfect_pair_scores_999_under_cv_and_less_under_a_fixed_penalty() -> None:
    """A penalty alpha shrinks the weight of 1 to 1 - alpha: dlib's .1 makes .9 of a perfect pair, .89 of a near one."""
    orthogonal = np.tile(np.array([[1, 1], [1, -1], [-1, 1], [-1, -1]], dtype=float), (50, 1))
    pair = [orthogonal, -orthogonal[:, ::-1]]
    assert udr(pair).scores == pytest.approx([0.999, 0.999], abs=1e-6)
    assert udr(pair, alpha=0.1).scores == pytest.approx([0.9, 0.9], abs=1e-9)
    assert udr(pair, alpha=0.1, aggregate="dlib").scores == pytest.approx([0.9, 0.9], abs=1e-9)
    assert udr(pair, similarity="spearman").scores == pytest.approx([1.0, 1.0])
    assert udr([BASE, BASE], alpha=0.1, aggregate="dlib").scores == pytest.approx([0.9, 0.9], abs=1e-9)
    near = BASE + 0.1 * np.random.default_rng(1).standard_normal(BASE.shape)
    assert udr([BASE, near], alpha=0.1, aggregate="dlib").scores == pytest.approx([0.89, 0.89], abs=0.01)


# Which models are compared


def population() -> list[FloatArray]:
    rng = np.random.default_rng(6)
    return [BASE @ rotation(seed) + 0.3 * rng.standard_normal(BASE.shape) for seed in range(7)]


def test_scores_are_medians_over_comparisons() -> None:
    result = udr(population(), alpha=0.1)
    assert np.isnan(np.diag(result.pairs)).all()
    for model, row in enumerate(result.pairs):
        assert result.scores[model] == np.median(np.delete(row, model))


def test_models_are_compared_within_their_group() -> None:
    groups = ["a", "b", "a", "b", "a", "b", "b"]
    models = population()
    result = udr(models, groups=groups, alpha=0.1)
    same = np.equal.outer(groups, groups) & ~np.eye(7, dtype=bool)
    np.testing.assert_array_equal(~np.isnan(result.pairs), same)
    apart = udr([models[m] for m in (0, 2, 4)], alpha=0.1)
    np.testing.assert_allclose(result.scores[[0, 2, 4]], apart.scores, atol=1e-12)


def test_comparisons_are_drawn_without_replacement_and_by_the_seed() -> None:
    models = population()
    everything = udr(models, alpha=0.1)
    result = udr(models, alpha=0.1, n_comparisons=3, seed=1)
    taken = ~np.isnan(result.pairs)
    assert taken.sum(axis=1).tolist() == [3] * 7
    assert not taken.diagonal().any()
    np.testing.assert_allclose(result.pairs[taken], everything.pairs[taken], atol=1e-12)
    assert result.scores[0] == np.median(result.pairs[0][taken[0]])
    np.testing.assert_array_equal(udr(models, alpha=0.1, n_comparisons=3, seed=1).pairs, result.pairs)
    other = ~np.isnan(udr(models, alpha=0.1, n_comparisons=3, seed=2).pairs)
    assert (other != taken).any()


def test_fewer_others_than_asked_for_are_all_taken_and_noted() -> None:
    result = udr(population()[:3], alpha=0.1, n_comparisons=5)
    assert (~np.isnan(result.pairs)).sum() == 6
    assert result.notes == ("fewer than 5 others to compare with, all of which were used: 3 of 3 models",)


# Laws


@pytest.mark.parametrize("arguments", [{}, {"alpha": 0.1}, {"similarity": "spearman"}])
def test_unchanged_by_permuting_flipping_scaling_and_shifting_codes_of_one_model(arguments: dict) -> None:
    models = population()[:3]
    before = udr(models, **arguments).scores
    for change in (models[0][:, ::-1], -models[0], models[0] * [3, 0.5, 7, 1e-3], models[0] + 1e3):
        np.testing.assert_allclose(udr([change, *models[1:]], **arguments).scores, before, atol=1e-9)


def test_badly_conditioned_latents_are_solved_to_the_optimum() -> None:
    """Two nearly equal latents: the optimality conditions of the multi-task lasso hold at the answer."""
    inputs = standard(np.column_stack([BASE, BASE[:, 0] + 1e-3 * BASE[:, 1]]))
    targets = standard(BASE @ rotation(2))
    weights, penalty, converged = cross_validated(*moments(inputs, targets))
    assert converged
    pull = inputs.T @ (targets - inputs @ weights) / N
    for row, force in zip(weights, pull, strict=True):
        norm = np.linalg.norm(row)
        if norm > 0:
            np.testing.assert_allclose(force, penalty * row / norm, atol=1e-7)
        else:
            assert np.linalg.norm(force) <= penalty + 1e-7


@pytest.mark.parametrize("alpha", ["cv", 0.1])
def test_lassos_that_have_not_converged_are_noted(alpha: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    models = [BASE, -BASE, BASE @ rotation(1)]
    assert udr(models, alpha=alpha).converged.all()
    name, place = ("cross_validated", 2) if alpha == "cv" else ("separate", 1)
    solve = getattr(_pairs, name)
    calls = count(1)

    def last_call_stops(*arguments: Any) -> Any:
        number = next(calls)
        found = solve(*arguments)
        return (*found[:place], found[place] and number < 6)

    monkeypatch.setattr(_pairs, name, last_call_stops)
    monkeypatch.setattr(_pairs, "by_one_weight", _pairs.by_one_weight.py_func)
    result = udr(models, alpha=alpha)
    ((one, other),) = np.argwhere(~result.converged).tolist()  # whichever pair was the last
    assert one != other
    assert result.notes[-1] == f"lassos that have not converged: model {one} from model {other}"


def test_a_descent_that_is_stopped_has_not_converged(monkeypatch: pytest.MonkeyPatch) -> None:
    """In plain Python, in which two sweeps are all that correlated latents get."""
    solver = import_module("unbraid.metrics._solvers.group_lasso")
    monkeypatch.setattr(solver, "multi_task", solver.multi_task.py_func)
    monkeypatch.setattr(solver, "N_PENALTIES", 3)
    inputs, targets = CASES["correlated"]
    assert solver.cross_validated.py_func(*moments(inputs, targets))[2]
    monkeypatch.setattr(solver, "N_SWEEPS", 2)
    assert not solver.cross_validated.py_func(*moments(inputs, targets))[2]


# What is refused


def test_a_score_card_skips_it_with_the_reason() -> None:
    factors = np.random.default_rng(0).integers(3, size=(N, 2))
    with pytest.raises(NotDefined, match="needs the codes of several models"):
        udr(BASE, factors)
    with pytest.raises(ValueError, match="udr compares several models and needs no labels: see unbraid.rank"):
        score(BASE, factors, metrics=["mig", "udr"])


@pytest.mark.parametrize(
    ("models", "arguments", "message"),
    [
        ([BASE], {}, "at least two models' codes; got 1"),
        ([BASE, BASE[:-1]], {}, r"codes\[0\] has 600 rows, codes\[1\] 599"),
        ([BASE, np.full_like(BASE, np.nan)], {}, r"codes\[1\] must be finite; row 0, column 0"),
        ([BASE[:9], BASE[:9]], {}, "at least 10 rows for cross-validation; got 9"),
        ([BASE, BASE], {"kl": [np.ones(4), np.ones(3)]}, r"kl\[1\] must be 4 finite numbers"),
        ([BASE, BASE], {"kl": [np.ones(4), np.full(4, np.nan)]}, r"kl\[1\] must be 4 finite numbers"),
        ([BASE, BASE, BASE], {"groups": ["a", "a", "b"]}, "model 2 is the only one in 'b'"),
    ],
)
def test_unsound_input_is_refused_by_name(models: list, arguments: dict, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        udr(models, **arguments)


# Models that learned nothing


ORTHONORMAL = np.tile(np.kron(np.array([[1, 1, 1], [1, -1, -1], [-1, 1, -1], [-1, -1, 1]]), np.ones((3, 1))), (50, 1))


def nearly_one_line(share: float) -> FloatArray:
    """Latents t, t + share e1, t + share e2: nearly collinear once standardised, though t, e1, e2 can be read off."""
    t, first, second = ORTHONORMAL.T.astype(float)
    return np.column_stack([t, t + share * first, t + share * second])


def test_weights_above_1_and_the_models_behind_them_are_named() -> None:
    """Least squares by hand: e1 = (s z1 - t) / .1, z1 of length s = sqrt(1.01) before it is standardised: s / .1."""
    models = [ORTHONORMAL, -ORTHONORMAL[:, ::-1], nearly_one_line(0.1)]
    result = udr(models, alpha=0.0)
    heavy = np.sqrt(1.01) / 0.1
    expected = [[np.nan, 1, heavy], [1, np.nan, heavy], [1, 1, np.nan]]
    np.testing.assert_allclose(result.largest, expected, atol=1e-8)
    (note,) = result.notes
    assert "the scores of model 0 (5.5), model 1 (5.5); these are predicted from model 2 (10) whose latents" in note
    assert 'by similarity "spearman"' in note
    cautious = udr(models)
    assert cautious.scores[:2].min() > 1.5
    assert len(cautious.notes) == 1
    ranks = udr(models, similarity="spearman")
    assert np.nanmax(ranks.largest) <= 1 + 1e-12
    assert ranks.scores.max() <= 1
    assert ranks.notes == ()


@pytest.mark.parametrize("arguments", [{}, {"alpha": 0.1}])
def test_nothing_is_noted_of_models_whose_latents_are_uncorrelated(arguments: dict) -> None:
    result = udr([*population(), BASE], **arguments)
    assert result.notes == ()
    assert np.nanmax(result.largest) < 1.05


def test_one_odd_comparison_of_many_is_not_noted() -> None:
    """Three of four comparisons of every good model are with other good ones."""
    result = udr([ORTHONORMAL] * 4 + [nearly_one_line(0.1)], alpha=0.0)
    assert np.nanmax(result.largest[0]) > 10
    assert result.notes == ()


def test_a_median_above_1_05_is_named() -> None:
    (note,) = heavy_note(["a", "b"], np.array([[np.nan, 1.04], [1.06, np.nan]]))
    assert "the scores of b (1.1); these" in note


@pytest.mark.parametrize("similarity", ["lasso", "spearman"])
def test_rotated_latents_agree_as_models_do_that_share_no_axes(similarity) -> None:
    """Models that are rotations of each other score within what rotating them again gives; aligned ones far above."""
    rng = np.random.default_rng(0)
    latents = rng.standard_normal((400, 3))
    rotations = np.linalg.qr(rng.standard_normal((5, 3, 3)))[0]
    options: dict[str, Any] = {"similarity": similarity, "alpha": 0.1, "aggregate": "paper", "times": 19}
    score, rotated = rotated_udr([latents @ each for each in rotations], **options)
    models = [latents @ each for each in rotations]
    assert score == pytest.approx(udr(models, similarity=similarity, alpha=0.1).scores[0])
    assert rotated.min() < score < rotated.max()
    aligned, around = rotated_udr([latents, -latents, latents[:, ::-1], latents, latents], **options)
    assert aligned > 0.89
    assert aligned > around.max() + 0.2
    assert around.mean() == pytest.approx(rotated.mean(), abs=0.1)
    assert rotated_udr(models, **options)[1].tolist() == rotated.tolist(), "the same seed, the same rotations"
