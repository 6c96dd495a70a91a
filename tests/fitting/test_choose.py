"""Which model is chosen, and how sure that is, by cases that can be worked out by hand."""

from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np

from unbraid.data import Representation
from unbraid.fitting import choose as choosing
from unbraid.fitting.choose import Candidate, Choice, best_settings, choose, free_latents
from unbraid.ranking.choice_stability import DRAWS

RNG = np.random.default_rng(0)
FACTORS = RNG.uniform(-1, 1, size=(1000, 5))


def candidate(name: str, codes: np.ndarray, setting: str, elbo: float) -> Candidate:
    run: Any = SimpleNamespace(path=Path(name), codes=lambda: Representation(codes))
    return Candidate(run, setting, elbo)


def ranked(monkeypatch, candidates: list[Candidate], untrained: tuple = ()) -> Choice:
    """`choose`, of codes in place of runs."""
    whole = choosing.rank

    def of_codes(models: Any, **options: Any) -> Any:
        spread = np.full(FACTORS.shape, -3.0)
        return whole(
            {name: Representation(each.codes().codes, log_variances=spread) for name, each in models.items()}, **options
        )

    monkeypatch.setattr(choosing, "rank", of_codes)
    return choose(candidates, untrained, seed=0)


def good(noise: float) -> np.ndarray:
    return FACTORS[:, RNG.permutation(5)] * RNG.choice([-1, 1], 5) + noise * RNG.normal(size=FACTORS.shape)


def turned() -> np.ndarray:
    return FACTORS @ np.linalg.qr(RNG.normal(size=(5, 5)))[0]


def test_the_model_that_others_agree_with_most_is_chosen_whatever_its_elbo(monkeypatch):
    noises = [0.3, 0.01, 0.4, 0.5, 0.4, 0.5, 0.4, 0.5]
    models = [candidate(f"good{i}", good(noise), "good", -9.0 + i) for i, noise in enumerate(noises)]
    models += [candidate(f"bad{i}", turned(), "bad", -1.0) for i in range(2)]
    found = ranked(monkeypatch, models)
    assert found.chosen is models[1]
    assert found.sure_of_setting > 0.99
    assert found.sure_of_model > 0.9
    assert best_settings(found) == ["good", "bad"]


def test_models_that_find_no_axes_are_not_chosen_among(monkeypatch):
    found = ranked(monkeypatch, [candidate(f"bad{i}", turned(), "bad", -1.0) for i in range(6)])
    assert found.chosen is None
    assert "no better than randomly rotated latents" in found.reason
    assert (found.sure_of_model, found.sure_of_setting) == (0.0, 0.0)


def test_one_model_is_no_choice():
    found = choose([candidate("one", FACTORS, "a", -1.0)], [], 0)
    assert found.reason == "1 trained model; to choose takes two or more"


def test_models_that_collapsed_do_not_make_the_choice_look_close(monkeypatch):
    """They agree with none, and the ranking compares nothing with them: the others stand as they do alone."""
    noises = [0.3, 0.01, 0.4, 0.5]
    models = [candidate(f"good{i}", good(noise), "good", -9.0) for i, noise in enumerate(noises)]
    dead = [candidate(f"dead{i}", 1e-3 * RNG.normal(size=FACTORS.shape), "dead", -20.0) for i in range(3)]
    with monkeypatch.context() as patch:
        alone = ranked(patch, models)
    found = ranked(monkeypatch, models + dead)
    assert found.chosen is alone.chosen is models[1]
    assert found.ranking is not None
    assert found.ranking.informative.tolist() == [5] * 4 + [0] * 3
    assert found.sure_of_model == alone.sure_of_model == 1.0
    assert found.sure_of_setting == 1.0
    # Of four drawn from four, three are different in 9/16 of the cases and all in 3/32.
    assert abs(found.draws / DRAWS - 21 / 32) < 0.06


def test_latents_that_draw_one_curve_are_one_thing():
    """A half circle of radius 2 and 1: either latent says where on it an image is, but for the turn of one of them."""
    angle = RNG.uniform(0, np.pi, 1000)
    curve = np.stack([2 * np.cos(angle), np.sin(angle)], axis=1)
    assert free_latents(curve) == [0]
    assert free_latents(np.column_stack([curve, RNG.normal(size=1000)])) == [0, 2]
    correlated = RNG.normal(size=(1000, 2)) @ np.array([[1.0, 0.8], [0.0, 0.6]])
    assert sorted(free_latents(correlated)) == [0, 1], "a correlation of .8 leaves .36 of the variance"
    assert len(free_latents(FACTORS)) == 5


def test_copies_of_images_do_not_make_latents_follow_from_one_another():
    """The nearest samples by one latent were copies, which agree in the other, too, whatever it is."""
    rounding = 1e-6 * RNG.normal(size=(3000, 2))  # a batch of another length
    different = RNG.uniform(-1, 1, (100, 2))
    assert sorted(free_latents(different.repeat(30, axis=0) + rounding)) == [0, 1]
    angle = RNG.uniform(0, np.pi, 100)
    curve = np.stack([2 * np.cos(angle), np.sin(angle)], axis=1)
    assert free_latents(curve.repeat(30, axis=0) + rounding) == [0], "one curve stays one thing"
    assert len(free_latents(different[:20].repeat(150, axis=0) + rounding)) == 1, "which of twenty is one thing"


def test_a_single_factor_in_two_latents_is_not_chosen(monkeypatch):
    angle = RNG.uniform(0, np.pi, len(FACTORS))
    curve = np.stack([2 * np.cos(angle), np.sin(angle)], axis=1)
    flips = [[1, 1], [-1, 1], [1, -1], [-1, -1]]
    wide = [np.column_stack([curve * flip, np.zeros((len(FACTORS), 3))]) for flip in flips]
    found = ranked(monkeypatch, [candidate(f"{i}", each, "one", -1.0) for i, each in enumerate(wide)])
    assert found.chosen is None
    assert found.reason.endswith("a single thing varies in these images")
