"""What the page says, by numbers that can be worked out without it."""

from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from unbraid.datasets import from_array
from unbraid.fitting.choose import Choice
from unbraid.fitting.fit_images import prepare
from unbraid.fitting.fit_page import explained, fit_page, latents

RNG = np.random.default_rng(0)
IMAGES = RNG.integers(0, 256, (600, 8, 8, 1), dtype=np.uint8)


def of_components(n: int) -> Any:
    """A model that is the principal components of the images."""
    pixels = IMAGES.reshape(len(IMAGES), -1) / 255
    mean, axes = pixels.mean(0), np.linalg.svd(pixels - pixels.mean(0), full_matrices=False)[2][:n]
    return SimpleNamespace(
        encode=lambda images: (images.reshape(len(images), -1) / 255 - mean) @ axes.T,
        decode=lambda codes: (codes @ axes + mean).reshape(-1, 8, 8, 1),
    )


@pytest.mark.parametrize("n", [1, 5, 20])
def test_principal_components_explain_what_principal_components_explain(n: int):
    found = explained(of_components(n), from_array(IMAGES), n)
    assert found is not None
    assert found["n"] == n
    assert found["model"] == pytest.approx(found["pca"], abs=2e-3), "pixels are cut to 0 .. 1"
    assert 0 < found["pca"] < 1


def test_the_mean_image_explains_nothing():
    mean = (IMAGES / 255).mean(0)
    run: Any = SimpleNamespace(encode=lambda images: images, decode=lambda codes: np.tile(mean, (len(codes), 1, 1, 1)))
    found = explained(run, from_array(IMAGES), 1)
    assert found is not None
    assert found["model"] == pytest.approx(0, abs=1e-9)


@pytest.mark.parametrize("value", [0, 77])
def test_equal_images_have_no_variance_to_explain(value: int):
    assert explained(of_components(1), from_array(np.full_like(IMAGES, value)), 1) is None


def test_images_at_the_ends_of_a_latent_are_those_of_least_and_most_code(tmp_path: Path):
    pictures = prepare(IMAGES.repeat(2, 1).repeat(2, 2), tmp_path, 16)
    codes = np.stack([RNG.permutation(600), RNG.permutation(600)], axis=1).astype(float)
    live = {"sliders": [{"informative": True, "codes": [[1]], "kl": ["1"], "strips": [""]}, {"informative": False}]}
    (found,) = latents(live, pictures, codes, np.array([0.0, 1.234]))
    assert found["tells"] == "1.23"
    assert found["code"] == 1
    assert [each["name"] for each in found["low"]] == [str(np.flatnonzero(codes[:, 1] == rank)[0]) for rank in range(6)]
    assert found["high"][0]["name"] == str(codes[:, 1].argmax())


def test_the_page_names_the_images_and_not_the_place_where_they_lie(tmp_path: Path):
    np.save(tmp_path / "scans.npy", IMAGES)
    pictures = prepare(tmp_path / "scans.npy", tmp_path / "cache", 16)
    plan: Any = SimpleNamespace(minutes=1, final=SimpleNamespace(size=16))
    page = fit_page(pictures, plan, Choice((), None, None, "no model", 1.0, 1.0), run=None, codes=None, judged={})
    assert "from <b>scans.npy</b>" in page
    assert str(tmp_path) not in page
    pictures = prepare(IMAGES, tmp_path / "of-an-array", 16)
    page = fit_page(pictures, plan, Choice((), None, None, "no model", 1.0, 1.0), run=None, codes=None, judged={})
    assert "from <b>an array</b>" in page
