"""UDR over many runs: by brute force from the definition, on constructed populations, and what is left out and why."""

import json
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from unbraid import Representation
from unbraid.base.natural_order import natural
from unbraid.base.types import FloatArray
from unbraid.metrics import udr
from unbraid.metrics._shared import udr_pairs as _pairs
from unbraid.ranking import cache as ranking_file
from unbraid.ranking import rank_candidates as ranking_module
from unbraid.ranking.cache import rank_and_keep, ranking_path, read_ranking, write_ranking
from unbraid.ranking.candidate import Candidate
from unbraid.ranking.rank_candidates import rank_candidates
from unbraid.ranking.ranking import Ranking, RankingOptions

N = 300
RNG = np.random.default_rng(0)
BASE = RNG.standard_normal((N, 4))
PAPER = RankingOptions(compare="same-hyperparameters", alpha="cv", informative="kl")
SPEARMAN = replace(PAPER, similarity="spearman")


def test_codes_that_hardly_vary_are_named() -> None:
    """`BASE` has a deviation of about 1; a posterior, whatever it says, answers the question."""
    models = [candidate(f"run{n}", 0.001 * BASE if n < 2 else BASE + 0.1 * n * BASE[::-1]) for n in range(4)]
    said = "run0, run1 have no posterior and no code with a standard deviation above 0.02: perhaps collapsed"
    assert said in rank_candidates(models, SPEARMAN).notes
    known = [replace(model, kl=np.ones(4)) for model in models]
    assert not any("collapsed" in note for note in rank_candidates(known, SPEARMAN).notes)


def rotation(seed: int) -> FloatArray:
    return np.linalg.qr(np.random.default_rng(seed).standard_normal((4, 4)))[0]


def candidate(run: str, codes: FloatArray, setting: str = "beta=4", family: str = "beta_vae", **more: Any) -> Candidate:
    return Candidate(run, family, setting, codes, more.get("kl"), more.get("samples", "same"))


def population() -> list[Candidate]:
    """Two settings of three seeds, noisy rotations; KL of latents .02 to 1, or uninformative at .005 and .001."""
    rng = np.random.default_rng(1)
    models = []
    for number in range(6):
        codes = BASE @ rotation(number % 3) + 0.4 * rng.standard_normal(BASE.shape)
        kl = np.array([0.5, 0.02 if number % 3 else 0.005, 1.0, 0.001])[rng.permutation(4)]
        models.append(candidate(f"run{number}", codes, f"beta={number % 2}", kl=kl))
    return models


# What counts


def learnt(number: int, noise: float = 0.1) -> Representation:
    """Four latents in an order of their own, and two that tell nothing, though one is far from the prior."""
    rng = np.random.default_rng(number)
    told = BASE[:, rng.permutation(4)] + noise * rng.standard_normal(BASE.shape)
    codes = np.hstack([told, 3 + 1e-3 * rng.standard_normal((N, 1)), 1e-3 * rng.standard_normal((N, 1))])
    log_variances = np.full(codes.shape, 2 * np.log(noise))
    log_variances[:, 4:] = [-2.0, 0.0]
    return Representation(codes, np.zeros((N, 1)), log_variances=log_variances)


def nothing(number: int) -> Representation:
    """Latents of tiny variance, in every second model nearly multiples of one; posteriors narrower than the prior."""
    noise = np.random.default_rng(100).standard_normal((N, 6))
    codes = noise[:, :1] + 0.02 * noise * [0, 1, 1, 1, 1, 1] if number % 2 else noise
    return Representation(1e-3 * codes, np.zeros((N, 1)), log_variances=np.full((N, 6), -1.0))


def test_signal_by_hand() -> None:
    codes, variances = np.array([[1.0, 5.0], [3.0, 5.0]]), np.array([[0.5, 1.0], [1.5, 1.0]])
    found = Representation(codes, np.zeros((2, 1)), log_variances=np.log(variances)).signal()
    assert found == pytest.approx([0.5 * np.log(2.0), 0.0])
    assert Representation(codes, np.zeros((2, 1))).signal() is None


@pytest.mark.lengthy
def test_models_that_learnt_nothing_are_not_ranked_first() -> None:
    """As the paper counts latents and fits the lasso, they are."""
    models = [Candidate.from_representation(f"good{k}", "vae", "beta=1", learnt(k)) for k in range(3)]
    models += [Candidate.from_representation(f"bad{k}", "vae", "beta=9", nothing(k)) for k in range(3)]
    ranking = rank_candidates(models)
    assert [set(latents.tolist()) for latents in ranking.latents] == [{0, 1, 2, 3}] * 3 + [set()] * 3
    assert ranking.scores[:3].min() > 0.8
    assert ranking.scores[3:].tolist() == [0.0] * 3
    assert ranking.best in {"good0", "good1", "good2"}
    paper = rank_candidates(models, PAPER)
    assert paper.informative.tolist() == [5, 5, 5, 6, 6, 6]
    assert paper.scores[3:].max() > paper.scores[:3].max() > 0
    assert set(paper.doubted) == {"bad0", "bad1", "bad2"}
    assert paper.best in {"good0", "good1", "good2"}, "what a note doubts is never the best"
    assert rank_candidates(models[3:]).best is None
    many = [*models, *(Candidate.from_representation(f"more{k}", "vae", "beta=9", nothing(k + 3)) for k in range(3))]
    np.testing.assert_allclose(rank_candidates(many).scores[:3], ranking.scores[:3], atol=1e-9)


def test_scores_do_not_depend_on_the_test_against_rotated_models() -> None:
    models = population()
    tested, scored = rank_candidates(models), rank_candidates(models, tested=False)
    assert scored.scores.tolist() == tested.scores.tolist()
    assert tested.rotated
    assert not scored.rotated


# Scores


@pytest.mark.parametrize("options", [PAPER, SPEARMAN, replace(PAPER, alpha=0.1), replace(PAPER, aggregate="dlib")])
@pytest.mark.parametrize("compare", ["same-hyperparameters", "all"])
def test_scores_are_those_of_udr_among_the_models_compared(options: RankingOptions, compare: Any) -> None:
    models = population()
    ranking = rank_candidates(models, replace(options, compare=compare))
    expected = udr(
        [model.matrix() for model in models], kl=[model.kl for model in models],
        groups=None if compare == "all" else [model.setting for model in models],
        similarity=options.similarity, alpha=options.alpha, aggregate=options.aggregate,
    )  # fmt: skip
    np.testing.assert_allclose(ranking.pairs, expected.pairs, atol=1e-9)
    np.testing.assert_allclose(ranking.scores, expected.scores, atol=1e-9)
    assert ranking.informative.tolist() == [2, 3, 3, 2, 3, 3]
    assert [set(latents.tolist()) for latents in ranking.latents] == [
        set(np.flatnonzero(np.asarray(model.kl) > 0.01).tolist()) for model in models
    ]


@pytest.mark.parametrize("compare", ["same-hyperparameters", "all"])
def test_copies_up_to_permutation_sign_and_subset_score_above_rotations(compare: Any) -> None:
    """Within all, the copies are the larger herd: scores are medians over the others."""
    rng = np.random.default_rng(2)
    copies = [BASE, -BASE[:, [2, 0, 3, 1]], BASE[:, [3, 1, 2]], BASE[:, [1, 0, 3, 2]] * [1, -1, 1, -1], -BASE]
    turned = [BASE @ rotation(seed) for seed in range(10, 13)]
    models = [
        candidate(f"run{n}", codes + 0.05 * rng.standard_normal(codes.shape), "copies" if n < 5 else "turned")
        for n, codes in enumerate(copies + turned)
    ]
    ranking = rank_candidates(models[::-1], RankingOptions(compare=compare))
    assert ranking.scores[3:].min() > ranking.scores[:3].max() + 0.15
    medians = ranking.per_setting().set_index("setting")["median"]
    assert medians["copies"] > medians["turned"] + 0.2
    assert ranking.best in {f"run{n}" for n in range(5)}


def test_models_are_compared_with_those_that_the_option_names() -> None:
    models = [
        candidate("a0", BASE, "beta=1"), candidate("b0", BASE, "beta=2"),
        candidate("a1", BASE, "beta=1"), candidate("b1", BASE, "beta=2"),
        candidate("c0", BASE, "beta=1", "other"), candidate("c1", BASE, "beta=1", "other"),
    ]  # fmt: skip
    met = {
        compare: {
            tuple(sorted((i, j))) for i, j in rank_candidates(models, replace(SPEARMAN, compare=compare)).matrices
        }
        for compare in ("same-hyperparameters", "same-family", "all")
    }
    assert met["same-hyperparameters"] == {(0, 2), (1, 3), (4, 5)}
    assert met["same-family"] == {(0, 1), (0, 2), (0, 3), (1, 2), (1, 3), (2, 3), (4, 5)}
    assert len(met["all"]) == 15


@pytest.mark.parametrize("compare", ["all", "same-family"])
@pytest.mark.parametrize("n_silent", [1, 2, 6])
def test_comparisons_are_drawn_among_models_that_have_an_informative_latent(compare: Any, n_silent: int) -> None:
    """Five copies of one model agree, whichever of them are drawn, and as many as wanted are."""
    models = [candidate(f"run{n}", BASE[:, :: 1 - 2 * (n % 2)]) for n in range(5)]
    models += [candidate(f"dead{n}", BASE @ rotation(n), kl=np.zeros(4)) for n in range(n_silent)]
    for n_comparisons in (1, 2):
        for seed in range(3):
            options = replace(SPEARMAN, compare=compare, n_comparisons=n_comparisons, seed=seed)
            ranking = rank_candidates(models, options, tested=False)
            assert (~np.isnan(ranking.pairs[:5, :5])).sum(axis=1).tolist() == [n_comparisons] * 5
            assert ranking.scores[5:].tolist() == [0.0] * n_silent
            full = rank_candidates(models[:5], SPEARMAN, tested=False).pairs
            drawn = [np.median(row[~np.isnan(own[:5])]) for row, own in zip(full, ranking.pairs, strict=False)]
            assert ranking.scores[:5] == pytest.approx(drawn)
            assert ranking.scores[:5].min() > 0.85


def test_one_model_among_silent_ones_scores_0_as_there_is_none_to_compare_it_with() -> None:
    models = [candidate("alive", BASE), *(candidate(f"dead{n}", BASE, kl=np.zeros(4)) for n in range(2))]
    for n_comparisons in (None, 1):
        options = replace(SPEARMAN, compare="all", n_comparisons=n_comparisons)
        assert rank_candidates(models, options).scores.tolist() == [0.0, 0.0, 0.0]


# What is left out


def test_what_cannot_be_compared_is_left_out_with_the_reason() -> None:
    models = [
        candidate("good0", BASE), candidate("good1", -BASE),
        candidate("lonely", BASE, "beta=16"), candidate("nan", np.where(BASE > 3, np.nan, BASE) + np.nan),
        candidate("other", BASE, samples="other rows"),
    ]  # fmt: skip
    ranking = rank_candidates(models, SPEARMAN, left_out={"exploded": "diverged: step 30: the loss is not finite"})
    assert ranking.runs == ("good0", "good1")
    assert dict(ranking.left_out) == {
        "exploded": "diverged: step 30: the loss is not finite",
        "nan": "its codes or their KL are not finite",
        "other": "its rows are not the samples of good0 (same factors, same order)",
        "lonely": "there is no other run of its setting to compare it with",
    }
    everything = rank_candidates(models, replace(SPEARMAN, compare="all"))
    assert everything.runs == ("good0", "good1", "lonely")


def test_models_without_posterior_count_all_latents_and_silent_ones_score_0() -> None:
    models = [
        candidate("pca0", BASE, family="pca"), candidate("pca1", BASE, family="pca"),
        candidate("dead", BASE, kl=np.zeros(4)), candidate("half", BASE, kl=np.array([1.0, 1.0, 0.0, 0.0])),
    ]  # fmt: skip
    ranking = rank_candidates(models, SPEARMAN)
    assert ranking.informative.tolist() == [4, 4, 0, 2]
    assert ranking.scores.tolist() == pytest.approx([1.0, 1.0, 0.0, 0.0], abs=0.2)
    assert ranking.notes[:2] == (
        "dead has no informative latent and score 0",
        "pca0, pca1 have no posterior: all latents that vary count as informative",
    )
    assert ranking.notes[2].startswith("every seed of pca gives the same codes")


@pytest.mark.parametrize("informative", ["signal", "kl"])
def test_a_constant_code_of_a_model_without_posterior_changes_no_score(informative: Any) -> None:
    models = [each.astype("float32") for each in (BASE, -BASE[:, ::-1], BASE @ rotation(0))]
    options = RankingOptions(informative=informative)
    alone = rank_candidates([candidate(f"m{place}", codes) for place, codes in enumerate(models)], options)
    dead = [np.column_stack([np.full(len(codes), 0.3, dtype="float32"), codes]) for codes in models]
    found = rank_candidates([candidate(f"m{place}", codes) for place, codes in enumerate(dead)], options)
    np.testing.assert_array_equal(found.pairs, alone.pairs)
    assert [latents.tolist() for latents in found.latents] == [[1, 2, 3, 4]] * 3
    assert found.best == alone.best
    flat = rank_candidates([candidate("none", np.full_like(BASE, 0.3)), *[candidate("a", BASE), candidate("b", BASE)]])
    assert flat.scores[0] == 0
    assert flat.informative.tolist() == [0, 4, 4]


def test_a_candidate_knows_its_samples_and_kl() -> None:
    factors = np.arange(6).reshape(3, 2)
    first = Candidate.from_representation(
        "a", "vae", "", Representation(BASE[:3], factors, log_variances=np.zeros((3, 4)))
    )
    assert first.kl == pytest.approx((BASE[:3] ** 2 / 2).mean(0))
    assert (
        Candidate.from_representation("b", "vae", "", Representation(BASE[:3] + 1, factors.astype(float))).samples
        == first.samples
    )
    assert (
        Candidate.from_representation("c", "vae", "", Representation(BASE[:3], factors[::-1])).samples != first.samples
    )


# Tables


@pytest.fixture(scope="module")
def ranking() -> Ranking:
    models = population() + [candidate(f"few{n}", BASE[:, :2], "beta=16", kl=np.ones(2)) for n in range(2)]
    return rank_candidates(models, SPEARMAN, left_out={"gone": "failed: no memory"})


def test_tables_sort_runs_by_score_and_settings_by_their_numbers(ranking: Ranking) -> None:
    frame = ranking.to_frame()
    assert list(frame.columns) == ["rank", "run", "family", "setting", "udr.score", "udr.informative"]
    assert frame["udr.score"].is_monotonic_decreasing
    assert frame["rank"].tolist() == list(range(1, 9))
    assert frame["run"][0] == ranking.best
    scores = dict(zip(ranking.runs, ranking.scores, strict=True))
    assert [scores[run] for run in frame["run"]] == frame["udr.score"].tolist()
    settings = ranking.per_setting()
    assert settings["setting"].tolist() == ["beta=0", "beta=1", "beta=16"]
    assert settings["runs"].tolist() == [3, 3, 2]
    assert settings["median"][0] == np.median([scores[f"run{n}"] for n in (0, 2, 4)])


def test_likeness_of_wide_codes_is_the_least_of_seeds_of_one_setting(ranking: Ranking) -> None:
    least = np.full((8, 8), 0.1)
    for one, other, value in ((0, 2, 0.8), (0, 4, 0.5), (2, 4, 0.9), (1, 3, 0.7), (6, 7, np.nan)):
        least[[one, other], [other, one]] = value
    least[1, 5] = least[5, 1] = least[3, 5] = least[5, 3] = np.nan
    np.fill_diagonal(least, np.nan)
    assert replace(ranking, least=least).likeness("beta_vae") == 0.5
    assert replace(ranking, least=least).likeness("dip_vae") is None


def test_best_for_each_number_of_informative_latents(ranking: Ranking) -> None:
    best = ranking.best_by_informative()
    assert list(best) == [2, 3]
    scores = dict(zip(ranking.runs, ranking.scores, strict=True))
    for count, runs in ((2, ("run0", "run3", "few0", "few1")), (3, ("run1", "run2", "run4", "run5"))):
        assert best[count] == max(runs, key=lambda run: scores[run])  # of equals the first


def test_numbers_within_names_count_by_their_value() -> None:
    names = ["beta=16", "beta=2", "beta=1e-3", "beta=0.5, gamma=10", "beta=0.5, gamma=9", "mode=b", "mode=a"]
    assert sorted(names, key=natural) == [
        "beta=1e-3", "beta=0.5, gamma=9", "beta=0.5, gamma=10", "beta=2", "beta=16", "mode=a", "mode=b",
    ]  # fmt: skip


# The choice


def test_the_setting_of_the_highest_median_and_the_run_of_the_highest_score_are_chosen() -> None:
    """They need not belong together: the other seeds of the best run are rotated."""
    rng = np.random.default_rng(5)

    def noisy(turn: FloatArray, noise: float) -> FloatArray:
        return BASE @ turn + noise * rng.standard_normal(BASE.shape)

    straight = np.eye(4)
    models = [candidate(f"good{k}", noisy(straight, noise), "beta=1") for k, noise in enumerate((0.2, 0.3, 0.4))]
    models += [candidate("lucky", noisy(straight, 0.02), "beta=2")]
    models += [candidate(f"turned{k}", noisy(rotation(k), 0.1), "beta=2", "vae") for k in range(3)]
    ranking = rank_candidates(models, replace(SPEARMAN, compare="all"))
    chosen = ranking.choose()
    assert chosen is not None
    assert (chosen.family, chosen.setting, chosen.run) == ("beta_vae", "beta=2", "lucky")
    models[3] = candidate("lucky", noisy(straight, 0.02), "beta=2", "vae")
    ranking = rank_candidates(models, replace(SPEARMAN, compare="all"))
    chosen = ranking.choose()
    assert chosen is not None
    assert (chosen.family, chosen.setting, chosen.run) == ("beta_vae", "beta=1", "lucky")
    assert chosen.median == pytest.approx(np.median(ranking.scores[:3]))
    assert chosen.score == pytest.approx(ranking.scores.max())
    other = ranking.choose(without={"vae"})
    assert other is not None
    assert (other.run, other.setting) == ("good0", "beta=1")
    assert ranking.choose(without={"vae", "beta_vae"}) is None
    assert ranking.best == "lucky"


# The file


def test_a_ranking_survives_its_file(ranking: Ranking, tmp_path: Path) -> None:
    write_ranking(tmp_path / "spearman.npz", ranking)
    again = read_ranking(tmp_path / "spearman.npz")
    for name in ("runs", "families", "settings", "options", "left_out", "notes"):
        assert getattr(again, name) == getattr(ranking, name)
    np.testing.assert_array_equal(again.scores, ranking.scores)
    np.testing.assert_array_equal(again.pairs, ranking.pairs)
    assert again.matrices.keys() == ranking.matrices.keys()
    for pair, matrix in ranking.matrices.items():
        np.testing.assert_array_equal(again.matrices[pair], matrix)
    assert [latents.tolist() for latents in again.latents] == [latents.tolist() for latents in ranking.latents]


def test_a_ranking_is_made_once_for_the_same_codes(tmp_path: Path) -> None:
    seen: list[int] = []

    def rank(models: list[Candidate], options: RankingOptions = SPEARMAN, **left_out: str) -> Ranking:
        def see(done: int, total: int) -> None:
            if total <= len(models):  # rotations of the best, which follow, are more
                seen.append(done)

        return rank_and_keep(tmp_path, models, options, left_out, see)

    models = [*population(), candidate("lonely", BASE, "beta=16")]
    first = rank(models, waiting="not finished")
    assert first.left_out.keys() == {"waiting", "lonely"}
    assert ranking_path(tmp_path, SPEARMAN) == tmp_path / "udr" / "spearman.npz"
    seen.clear()
    again = rank(models)
    assert (seen, again.left_out.keys()) == ([], {"lonely"})
    np.testing.assert_array_equal(again.scores, first.scores)
    rank(models, replace(SPEARMAN, compare="all"))
    assert len(seen) == 7
    assert (tmp_path / "udr" / "spearman-all.npz").is_file()
    seen.clear()
    changed = [replace(models[0], codes=models[0].matrix() @ rotation(8)), *models[1:]]
    assert rank(changed).scores[0] != first.scores[0]
    assert seen == [1, 2, 3, 4, 5, 6]


def test_in_a_folder_that_cannot_be_written_models_are_ranked_and_nothing_kept(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refused(*_: object, **__: object) -> None:
        raise PermissionError(13, "Permission denied")

    monkeypatch.setattr(Path, "mkdir", refused)
    monkeypatch.setattr(ranking_file, "SAVED_EVERY", 0.0)
    ranking = rank_and_keep(tmp_path, population(), SPEARMAN, {})
    np.testing.assert_array_equal(ranking.scores, rank_candidates(population(), SPEARMAN).scores)
    assert not [*tmp_path.iterdir()]


def test_two_that_rank_at_once_compare_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    made, both, models = [], threading.Barrier(2), population()

    def compared(*arguments: Any, **options: Any) -> Ranking:
        time.sleep(0.1)
        made.append(rank_candidates(*arguments, **options))
        return made[-1]

    def rank(_: int) -> Ranking:
        both.wait(30)
        return rank_and_keep(tmp_path, models, SPEARMAN, {})

    monkeypatch.setattr(ranking_file, "rank_candidates", compared)
    with ThreadPoolExecutor(2) as pool:
        first, second = pool.map(rank, range(2))
    assert len(made) == 1
    np.testing.assert_array_equal(first.scores, second.scores)


@pytest.mark.parametrize("options", [RankingOptions(compare="all"), replace(SPEARMAN, compare="all")])
def test_a_new_model_costs_its_own_pairs_alone(options: RankingOptions, tmp_path: Path) -> None:
    models = [*population(), candidate("new", BASE @ rotation(9), "beta=16")]
    first, last = [rank_candidates([*models[:3], *models[4:]], options), rank_candidates(models, options)]
    known = first.known_pairs
    assert known is not None
    known.values[0, 1] += 1.0  # to be seen again, as what is known is not compared once more
    write_ranking(tmp_path / "kept.npz", first)
    known.matrices.clear()
    for kept in (first, read_ranking(tmp_path / "kept.npz")):
        again = rank_candidates(models, options, known=kept)
        off = again.pairs - last.pairs
        assert np.argwhere(np.abs(off) > 1e-9).tolist() == ([[0, 1]] if kept is not first else [])
        assert again.matrices.keys() == last.matrices.keys()
        for pair, matrix in again.matrices.items():
            np.testing.assert_allclose(matrix, last.matrices[pair], atol=1e-6)
    other = rank_candidates(models, replace(options, seed=1), known=read_ranking(tmp_path / "kept.npz"))
    np.testing.assert_allclose(other.pairs, last.pairs, atol=1e-6)


def test_interrupted_it_goes_on_with_the_pairs_that_are_left(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    options = RankingOptions(compare="all")
    models = population()
    monkeypatch.setattr(ranking_file, "SAVED_EVERY", 0.0)
    monkeypatch.setattr(_pairs, "TARGETS_AT_ONCE", 2)

    def stop(done: int, _: int) -> None:
        if done == 3:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        rank_and_keep(tmp_path, models, options, {}, stop)
    begun = tmp_path / "udr" / "lasso-all.npz.begun"
    found = read_ranking(begun).known_pairs
    assert found is not None
    assert np.isfinite(found.values).any()
    assert not list((tmp_path / "udr").glob("*.npz"))
    compared: list[int] = []
    count = _pairs.summarised
    monkeypatch.setattr(_pairs, "summarised", lambda *given: (compared.append(int(given[4].sum())), count(*given)))
    monkeypatch.setattr(ranking_module, "rotated_udr", lambda *_, **__: (1.0, np.zeros(1)))
    ranking = rank_and_keep(tmp_path, models, options, {})
    assert sum(compared) == len(models) * (len(models) - 1) - np.isfinite(found.values).sum()
    np.testing.assert_allclose(ranking.pairs, rank_candidates(models, options).pairs, atol=1e-9)
    assert not begun.exists()


@pytest.mark.parametrize(("name", "array"), [("values", np.zeros((2, 2))), ("digests", np.array(["a"]))])
def test_pairs_of_other_runs_are_damage(ranking: Ranking, tmp_path: Path, name: str, array: FloatArray) -> None:
    path = tmp_path / "spearman.npz"
    write_ranking(path, ranking)
    with np.load(path) as archive:
        held = dict(archive)
    np.savez(path, **(held | {name: array}))
    with pytest.raises(ValueError, match=rf"spearman\.npz is damaged \({name} must be .*; remove it to rank again"):
        read_ranking(path)


def test_a_bit_that_flips_in_the_file_is_damage_or_nothing(ranking: Ranking, tmp_path: Path) -> None:
    path = tmp_path / "spearman.npz"
    write_ranking(path, ranking)
    whole, rng = path.read_bytes(), np.random.default_rng(0)
    said: list[str] = []
    for _ in range(60):
        damaged = bytearray(whole)
        damaged[rng.integers(len(damaged))] ^= 1 << int(rng.integers(8))
        path.write_bytes(damaged)
        try:
            read_ranking(path)
        except ValueError as error:
            said.append(str(error))
    assert len(said) > 30
    assert all(line.startswith(f"{path} is damaged (") or "its format is" in line for line in said)


def test_codes_that_are_too_many_to_hold_are_read_when_needed(monkeypatch: pytest.MonkeyPatch) -> None:
    options = RankingOptions(compare="all")
    models = population()
    read = [replace(each, codes=lambda codes=each.codes: codes) for each in models]
    whole, again = rank_candidates(models, options), rank_candidates(read, options)
    np.testing.assert_array_equal(again.pairs, whole.pairs)
    assert again.digests == whole.digests
    monkeypatch.setattr(ranking_module, "MATRICES", 10)
    keys = [(each.family, each.setting) for each in models]
    fewer = rank_candidates(models, options).matrices
    assert fewer.keys() == {(i, j) for i, j in whole.matrices if keys[i] == keys[j]}


def test_damaged_or_foreign_files_are_named(ranking: Ranking, tmp_path: Path) -> None:
    path = tmp_path / "lasso.npz"
    with pytest.raises(FileNotFoundError, match=r"lasso\.npz: no such file"):
        read_ranking(path)
    path.write_bytes(b"PK\x03\x04 and then nothing")
    with pytest.raises(ValueError, match=r"lasso\.npz is damaged .*; remove it to rank again"):
        read_ranking(path)
    write_ranking(path, ranking)
    path.write_bytes(path.read_bytes()[: path.stat().st_size // 2])
    with pytest.raises(ValueError, match=r"lasso\.npz is damaged"):
        read_ranking(path)
    write_ranking(path, ranking)
    for name, wrong in (("doubted", 3), ("notes", None), ("options", {"alpha": 0.1, "kl": 1}), ("options", [])):
        described = {"format": 1, "options": {}, "left_out": {}, "notes": [], "doubted": [], name: wrong}
        with np.load(path) as archive:
            kept = {each: archive[each] for each in archive.files if each != "described"}
        np.savez(path, **kept, described=np.array(json.dumps(described)))
        with pytest.raises(ValueError, match=r"lasso\.npz is damaged .*; remove it to rank again"):
            read_ranking(path)
    np.savez(path, described=np.array(json.dumps({"format": 99})))
    with pytest.raises(ValueError, match="its format is 99; this version of unbraid reads 1"):
        read_ranking(path)


def test_what_little_a_model_tells_leaves_it_out_of_the_choice() -> None:
    """Informative latents of .02 nats each are less than a bit together, however well they agree."""
    quiet = [replace(candidate(f"quiet{n}", BASE, "beta=9"), signal=np.full(4, 0.02)) for n in range(2)]
    sound = [replace(candidate(f"sound{n}", BASE + 0.1 * n, "beta=4"), signal=np.full(4, 1.0)) for n in range(3)]
    ranking = rank_candidates([*quiet, *sound], SPEARMAN)
    assert ranking.silent == ("quiet0", "quiet1")
    assert ranking.informative.tolist() == [4] * 5
    assert (
        "quiet0, quiet1 have latents that together have less than one bit of information on a sample: not chosen"
        in ranking.notes
    )
    assert ranking.learnt.tolist() == [False, False, True, True, True]
    assert rank_candidates(quiet, SPEARMAN).why_none().startswith("none of 2 models has learnt anything")
    mostly = rank_candidates([*quiet, replace(quiet[0], run="quiet2"), sound[0]], SPEARMAN)
    assert mostly.choose() is None
    one = [replace(each, setting="") for each in (*quiet, replace(quiet[0], run="quiet2"), *sound[:2])]
    assert rank_candidates(one, SPEARMAN).why_none() == "3 of 5 models have learnt nothing"


def test_the_verdict_is_kept_with_the_ranking(tmp_path: Path) -> None:
    models = population()
    ranking = rank_candidates(models, RankingOptions(compare="all"))
    write_ranking(tmp_path / "kept.npz", ranking)
    kept = read_ranking(tmp_path / "kept.npz")
    assert (kept.rotated, kept.silent, kept.untrained) == (ranking.rotated, ranking.silent, ranking.untrained)
    assert (kept.best, kept.why_none()) == (ranking.best, ranking.why_none())
    assert len(ranking.rotated) == 1, "of one family"


def test_the_median_of_the_best_setting_is_that_of_all_its_runs() -> None:
    """As in the table of settings: a run without an informative latent scores 0 and counts."""
    rng = np.random.default_rng(1)
    sound = [candidate(f"sound{n}", BASE + 0.3 * rng.standard_normal(BASE.shape), "beta=4") for n in range(3)]
    dead = candidate("dead", BASE, "beta=4", kl=np.zeros(4))
    ranking = rank_candidates([*sound, dead], RankingOptions("spearman", informative="kl"))
    chosen = ranking.choose()
    assert chosen is not None
    assert ranking.scores[3] == 0.0
    assert chosen.median == pytest.approx(float(np.median(ranking.scores)))
    assert chosen.median < np.median(ranking.scores[:3])
    assert chosen.median == ranking.per_setting()["median"].tolist()[0]


def test_latents_that_vary_far_less_than_others_are_named() -> None:
    """A posterior says which latents are noise; without one all that vary count, and noise halves the score."""
    rng = np.random.default_rng(0)
    faint = np.array([1, 1, 1, 0.04])
    noise = [rng.standard_normal((N, 1)) for _ in range(3)]
    models = [candidate(f"run{n}", np.c_[BASE[:, :3], each] * (faint if n else 1.0)) for n, each in enumerate(noise)]
    said = (
        "latents whose standard deviation is below 5% of the largest count like the others in {}: leave these columns"
    )
    assert any(note.startswith(said.format("run1, run2")) for note in rank_candidates(models).notes)
    assert any(note.startswith(said.format("every model")) for note in rank_candidates(models[1:]).notes)
    for others in ([replace(each, kl=np.ones(4)) for each in models], [candidate(f"{n}", BASE) for n in range(2)]):
        assert not any("standard deviation is below" in note for note in rank_candidates(others).notes)


def test_models_that_agree_while_most_do_not_are_named() -> None:
    """Three of eight have the same latents, the others random rotations of them; of seven, four are no minority."""
    rng = np.random.default_rng(0)
    alike = {f"alike{n}": BASE + 0.2 * rng.standard_normal(BASE.shape) for n in range(4)}
    others = {f"other{n}": BASE @ rotation(n) for n in range(5)}
    chosen = {"other0", "alike0", "other1", "alike2", "alike1", "other2", "other3", "other4"}
    models = [candidate(name, codes) for name, codes in sorted((alike | others).items()) if name in chosen]
    said = "alike0, alike1 and alike2 agree with each other (UDR 0.6 or more) but not with the other 5 models"
    assert said in rank_candidates(models).notes
    most = [candidate(name, codes) for name, codes in (alike | others).items()][:7]
    assert not any("agree with each other" in note for note in rank_candidates(most).notes)
    none = [candidate(name, codes) for name, codes in others.items()]
    assert not any("agree with each other" in note for note in rank_candidates(none).notes)


@pytest.mark.parametrize(("noise", "low"), [(0.6, False), (0.7, True)])
def test_nothing_is_promised_of_a_choice_among_models_that_disagree(noise: float, low: bool) -> None:
    """The record of other choices is of the default way alone."""
    rng = np.random.default_rng(3)
    models = [candidate(f"run{n}", BASE + noise * rng.standard_normal(BASE.shape)) for n in range(6)]
    found = rank_candidates(models)
    assert found.best is not None
    assert (found.scores.max() < 0.6) == low
    assert any("these models disagree" in note for note in found.notes) == low
    assert any("by labels better" in note for note in found.notes) != low
    spearman = rank_candidates(models, RankingOptions(similarity="spearman"))
    none = rank_candidates([candidate(f"run{n}", BASE @ rotation(n)) for n in range(6)])
    assert none.best is None
    for silent in (spearman, none):
        assert not any("disagree" in note or "by labels" in note for note in silent.notes)
