"""The check of UDR's first assumption: seeds must matter."""

import numpy as np
import pandas as pd
import pytest

from unbraid.ranking.candidate import Candidate
from unbraid.ranking.rank_candidates import rank_candidates
from unbraid.ranking.ranking import RankingOptions
from unbraid.ranking.suitability import by_luck, probabilities, suitability

RNG = np.random.default_rng(0)
BASE = RNG.standard_normal((200, 3))


def search(n_settings: int, n_seeds: int, effect: float, noise: float, seed: int = 0) -> tuple[list, list, list]:
    rng = np.random.default_rng(seed)
    settings, seeds = zip(*[(h, s) for h in range(n_settings) for s in range(n_seeds)], strict=True)
    scores = effect * np.array(settings) + noise * rng.standard_normal(len(settings))
    return scores.tolist(), list(settings), list(seeds)


def test_by_hand() -> None:
    """Seed 0 prefers setting 1 (.6), seed 1 setting 0 (.5).

    .6 is at least as good as all four, .5 as three: 7/8. Setting 1 has .2 under seed 1, at least as good as one of two;
    setting 0 has .1 under seed 0, one of two: 1/2.
    """
    assert probabilities([0.1, 0.5, 0.6, 0.2], ["a", "a", "b", "b"], [0, 1, 0, 1]) == (7 / 8, 1 / 2)


def test_metrics_that_are_better_when_lower_are_turned_round() -> None:
    scores, *where = search(4, 5, 0.5, 1.0)
    turned = [-score for score in scores]
    assert probabilities(turned, *where, higher_is_better=False) == probabilities(scores, *where)
    assert probabilities(turned, *where) != probabilities(scores, *where)


def test_both_are_those_of_many_random_trials() -> None:
    scores, settings, seeds = search(4, 5, 0.5, 1.0)
    table = {(h, s): score for score, h, s in zip(scores, settings, seeds, strict=True)}
    rng = np.random.default_rng(1)
    wins = np.zeros(2)
    for _ in range(20_000):
        seed, other = rng.permutation(5)[:2]
        best = max(range(4), key=lambda setting: table[setting, seed])  # noqa: B023
        wins[0] += table[best, seed] >= table[rng.integers(4), rng.integers(5)]
        wins[1] += table[best, other] >= table[rng.integers(4), other]
    assert probabilities(scores, settings, seeds) == pytest.approx(wins / 20_000, abs=0.01)


def test_a_method_whose_seeds_do_not_matter_scores_1_and_one_whose_settings_do_not_a_little_above_a_half() -> None:
    assert probabilities(*search(6, 20, 1.0, 0.0)) == (1.0, 1.0)
    within_seed_win_rate, across_seed_win_rate = probabilities(*search(6, 60, 0.0, 1.0))
    assert within_seed_win_rate == pytest.approx(6 / 7, abs=0.02)
    assert across_seed_win_rate == pytest.approx(0.5 + 1 / 12, abs=0.04)  # a tie with itself counts


def test_luck_is_the_mean_over_searches_where_nothing_matters() -> None:
    found = np.mean([probabilities(*search(3, 4, 0.0, 1.0, seed)) for seed in range(400)], axis=0)
    assert by_luck(*search(3, 4, 0.5, 1.0)) == pytest.approx(found, abs=0.02)
    assert by_luck(*search(3, 4, 0.5, 1.0))[1] == pytest.approx(4 / 6)
    scores, *where = search(2, 3, 0.5, 1.0)
    assert by_luck(scores, *where)[1] == by_luck([-s for s in scores], *where, higher_is_better=False)[1] == 0.75


@pytest.mark.parametrize(
    ("scores", "settings", "seeds", "message"),
    [
        ([1.0, 2.0], ["a", "a"], [0, 1], "two settings and two seeds; there are 1 and 2"),
        ([1.0, 2.0], ["a", "b"], [0, 0], "two settings and two seeds; there are 2 and 1"),
        ([1.0, 2.0, 3.0], ["a", "b", "b"], [0, 1, 1], "two models have the setting 'b' and the seed 1"),
        ([1.0, 2.0], ["a", "b"], [0, 1], "no setting that is best under one seed was run under another"),
    ],
)
def test_searches_without_an_answer_say_why(scores: list, settings: list, seeds: list, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        probabilities(scores, settings, seeds)


def frame_of(**families: tuple[list, list, list]) -> pd.DataFrame:
    parts = [
        pd.DataFrame({"family": family, "mig.score": scores, "setting": settings, "seed": seeds})
        for family, (scores, settings, seeds) in families.items()
    ]
    return pd.concat(parts, ignore_index=True)


def test_pca_is_warned_of_by_its_scores() -> None:
    frame = frame_of(beta_vae=search(3, 4, 0.2, 1.0), pca=search(3, 4, 1.0, 0.0))
    vae, pca = suitability(frame, None, "mig.score")
    assert (vae.family, vae.warning) == ("beta_vae", "")
    assert (vae.within_seed_win_rate, vae.across_seed_win_rate) == probabilities(*search(3, 4, 0.2, 1.0))
    assert (pca.family, pca.within_seed_win_rate, bool(pca.warning)) == ("pca", 1.0, True)
    assert "as with PCA" in pca.warning


@pytest.mark.parametrize("options", [RankingOptions("spearman"), RankingOptions(), RankingOptions(alpha=0.1)])
def test_equal_codes_for_every_seed_are_warned_of_without_labels_or_settings(options: RankingOptions) -> None:
    """As PCA in a study: one setting, codes that differ by sign alone; beside it a family whose seeds differ."""
    turned = [np.linalg.qr(np.random.default_rng(seed).standard_normal((3, 3)))[0] for seed in range(3)]
    models = [Candidate(f"pca{n}", "pca", "", BASE * sign) for n, sign in enumerate((1, -1, [1, -1, 1]))]
    models += [Candidate(f"vae{n}", "vae", "", BASE @ turn) for n, turn in enumerate(turned)]
    ranking = rank_candidates(models, options)
    if options.similarity == "spearman":
        assert ranking.best_first[:3] == [0, 1, 2], "equal codes agree best"
    assert ranking.best in ("vae0", "vae1", "vae2"), "and are not called the best"
    assert ranking.doubted == ("pca0", "pca1", "pca2")
    assert any(note.startswith("every seed of pca gives the same codes") for note in ranking.notes)
    frame = pd.DataFrame({"run": [model.run for model in models], "family": ["pca"] * 3 + ["vae"] * 3, "setting": ""})
    frame["seed"] = [0, 1, 2] * 2
    pca, vae = suitability(frame, ranking, "mig.score")
    assert pca.likeness is not None
    assert pca.likeness > 0.99
    assert pca.warning == "a note questions the scores of 3 of 3 runs of pca"
    assert pca.reason == "there are no scores by mig.score"
    assert vae.likeness is not None
    assert vae.likeness < 0.9
    assert not vae.warning
