"""How often a choice is the same when the models are drawn again, by cases that can be worked out by hand."""

import numpy as np

from unbraid import rank
from unbraid.ranking.choice_stability import DRAWS, resample
from unbraid.ranking.verdicts import model_verdict


def test_how_sure_it_is() -> None:
    """Run 0 agrees with all most; where it is not drawn, runs 2 and 3 of the other setting agree more than run 1.

    Of three runs or more are: both of the first setting (1/2) with any of the second; run 0 alone (1/4) or run 1 alone
    (1/4) with both of the second (1/2). So 1/8 of 3/4 draws choose another setting.
    """
    pairs = np.full((4, 4), 0.5)
    pairs[0] = pairs[:, 0] = 0.9
    pairs[2, 3] = pairs[3, 2] = 0.6
    settings = np.array(["a", "a", "b", "b"])
    every = np.ones(4, dtype=bool)
    found = resample(pairs, every, every, settings, 0)
    assert found.model == 1.0, "wherever it is drawn it wins"
    assert abs(found.draws / DRAWS - 3 / 4) < 0.06
    assert abs(found.draws_with_model / DRAWS - 5 / 8) < 0.06, "both of the first setting, or run 0 with both others"
    assert abs(found.setting - 5 / 6) < 0.06
    sound = np.array([True, True, False, False])
    assert resample(pairs, every, sound, settings, 0).setting == 1.0, "runs that are not sound are not chosen"


def test_only_the_models_of_the_highest_scores_are_judged(monkeypatch) -> None:
    """As by a plain loop over all models."""
    rng = np.random.default_rng(0)
    quality = rng.uniform(0.5, 1, 40)
    pairs = np.outer(quality, quality) + 0.05 * rng.normal(size=(40, 40))
    np.fill_diagonal(pairs, np.nan)
    every, one = np.ones(40, dtype=bool), np.full(40, "one")
    best = int(np.nanmedian(pairs, axis=1).argmax())
    draws, picked = np.random.default_rng(0), []
    for _ in range(DRAWS):
        drawn = np.unique(draws.choice(40, 40))
        picked.append((best in drawn, drawn[np.nanmedian(pairs[np.ix_(drawn, drawn)], axis=1).argmax()]))
    expected = np.mean([choice == best for there, choice in picked if there])
    assert 0 < expected < 1
    assert resample(pairs, every, every, one, best).model == expected
    monkeypatch.setattr("unbraid.ranking.choice_stability.TOP", 15)
    assert resample(pairs, every, every, one, best).model == expected


def test_a_ranking_says_how_often_the_same_model_is_best() -> None:
    """Six equally good models, of which one is nearer to what they share than the others, or none is."""
    rng = np.random.default_rng(0)
    shared = rng.normal(size=(1000, 3))

    def models(first: float) -> list[np.ndarray]:
        return [shared + noise * rng.normal(size=shared.shape) for noise in (first, *[0.4] * 5)]

    clear, close = (rank(models(first), similarity="spearman") for first in (0.05, 0.4))
    sure, unsure = clear.resampled(), close.resampled()
    assert sure is not None
    assert unsure is not None
    assert sure.model > 0.95
    assert unsure.model < 0.9
    assert model_verdict(clear)[0].endswith(
        f"; when the models are resampled, it is chosen in {sure.model:.0%} of the resamples that contain it"
    )
    three = rank(models(0.05)[:3], similarity="spearman")
    assert three.best is not None
    assert three.resampled() is None, "all samples of three models are the same"
    assert "resampled" not in model_verdict(three)[0]
