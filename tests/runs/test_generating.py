"""Codes of the prior against the densities and distributions of the families, and ways between images."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from scipy.stats import kstest

from tests.training.training_examples import SMALL, TINY
from unbraid import Run, train
from unbraid.families.family import Part
from unbraid.runs.generating import between
from unbraid.runs.run_page import run_page
from unbraid.runs.run_traversals import traverse

SETTINGS: dict[str, Any] = {
    "network": "dense", "steps": 30, "batch_size": 16, "processes": 0, "precision": "float32", "learning_rate": 1e-2,
}  # fmt: skip
N = 1500


def trained(family: str, out: Path, **settings: Any) -> Run:
    return train(family, TINY, out=out, **{**SETTINGS, **SMALL.get(family, {}), **settings})[0]


@pytest.mark.parametrize(
    ("family", "settings"),
    [
        ("beta_tcvae", {"latents": 3, "prior": "factorial_flow"}),
        ("parted_vae", {"latents": 2}),
        ("mtd", {"value_sigma": 0.5}),
        ("vae", {"latents": 2}),
    ],
)
def test_codes_have_the_density_of_the_prior(family: str, settings: dict[str, Any], tmp_path: Path) -> None:
    """Each code's distribution is the integral of the density by which the KL is taken, summed up on a grid."""
    run = trained(family, tmp_path, **settings)
    codes = run.prior_codes(N, seed=3)
    assert codes.shape == (N, run.n_codes)
    values = np.linspace(-12, 12, 2401, dtype=np.float32)
    grid = torch.from_numpy(np.repeat(values[:, None], run.n_codes, axis=1))
    every = {**run.config["hyperparameters"], **run._settings}
    row = run._family
    density = row.log_prior(run.modules, every) if row.log_prior else None
    with torch.no_grad():
        log = density(grid).numpy() if density else -0.5 * grid.numpy() ** 2 - 0.5 * np.log(2 * np.pi)
    for code in range(run.n_codes):
        upto = np.cumsum(np.exp(log[:, code].astype(float))) * (values[1] - values[0])
        assert upto[-1] == pytest.approx(1, abs=2e-3)
        said = kstest(codes[:, code], lambda at, upto=upto: np.interp(at, values, upto))
        assert said.pvalue > 1e-4, (family, code)


def test_circles_are_uniform_and_lines_normal(tmp_path: Path) -> None:
    run = trained("delta_vae", tmp_path, circles=2, euclidean=1)
    codes = run.prior_codes(N)
    for circle in (codes[:, :2], codes[:, 2:4]):
        np.testing.assert_allclose(np.linalg.norm(circle, axis=1), 1, atol=1e-6)
        turns = np.arctan2(circle[:, 1], circle[:, 0]) / (2 * np.pi) % 1
        assert kstest(turns, "uniform").pvalue > 1e-4
    assert kstest(codes[:, 4], "norm").pvalue > 1e-4
    assert abs(np.corrcoef(codes.T) - np.eye(5)).max() < 0.1
    moved = traverse(run, TINY, rows=1, steps=8)
    around = [values for circle, values in zip(moved.circles, moved.values, strict=True) if circle]
    np.testing.assert_allclose(around, [np.arange(8) * np.pi / 4] * 2)


@pytest.mark.parametrize(("prior", "law"), [("uniform", ("uniform", (-1, 2))), ("normal", ("norm", ()))])
def test_info_gan_draws_what_its_generator_was_given(prior: str, law: Any, tmp_path: Path) -> None:
    codes = trained("info_gan", tmp_path, latents=3, code_prior=prior, steps=2).prior_codes(N)
    assert all(kstest(column, *law).pvalue > 1e-4 for column in codes.T)


def test_weak_de_draws_every_class_alike(tmp_path: Path) -> None:
    run = trained("weak_de", tmp_path, latents=3)
    prior: Any = run.modules["prior"]
    known = prior.known > 0
    assert known.sum() > 1
    codes = run.prior_codes(20_000)
    means, roots = (each[known].double().numpy() for each in (prior.means, prior.roots))
    expected = means.mean(axis=0)
    squares = np.mean([root @ root.T + np.outer(mean, mean) for root, mean in zip(roots, means, strict=True)], axis=0)
    spread = np.sqrt(np.diag(squares))
    np.testing.assert_allclose(codes.mean(axis=0) / spread, expected / spread, atol=0.05)
    np.testing.assert_allclose(codes.T @ codes / len(codes) / np.outer(spread, spread),
                               squares / np.outer(spread, spread), atol=0.05)  # fmt: skip


def test_generated_images_are_decoded_and_the_same_for_a_seed(tmp_path: Path) -> None:
    run = trained("vae", tmp_path, latents=2, steps=2)
    images = run.generate(5, seed=1)
    assert images.shape == (5, 8, 8, 1)
    np.testing.assert_array_equal(images, run.decode(run.prior_codes(5, seed=1)))
    np.testing.assert_array_equal(run.prior_codes(3, seed=1), run.prior_codes(5, seed=1)[:3])
    assert not np.array_equal(run.generate(5, seed=2), images)
    for n in (0, 1.5):
        with pytest.raises(ValueError, match="n must be"):
            run.generate(n)  # pyright: ignore[reportArgumentType]
    assert "Generated images" in run_page(run, dataset=TINY)


def test_an_interpolation_goes_from_reconstruction_to_reconstruction(tmp_path: Path) -> None:
    run = trained("vae", tmp_path, latents=2, steps=2)
    one, other = TINY.images(np.array([3, 50])), TINY.images(np.array([99, 7]))
    ways = run.interpolate(one, other, steps=5)
    assert ways.shape == (2, 5, 8, 8, 1)
    low, high = run.encode(one), run.encode(other)
    for step in range(5):
        expected = run.decode(low + (high - low) * step / 4)
        np.testing.assert_allclose(ways[:, step], expected, atol=1e-6)
    with pytest.raises(ValueError, match="both ends must have the same number of images; got 2 and 1"):
        run.interpolate(one, other[:1])
    with pytest.raises(ValueError, match="steps must be"):
        run.interpolate(one, other, steps=1)


def test_circles_and_spheres_are_gone_around_the_shorter_way() -> None:
    """By hand: from 350 to 30 degrees by way of 10; a quarter of a great circle, halved; and to the opposite point."""
    degrees = np.deg2rad([350, 30])
    (one, other) = np.stack([np.cos(degrees), np.sin(degrees)], axis=1)
    parts, share = (Part("c", "circle", 2), Part("z", "gaussian", 1)), np.array([0.0, 0.5, 1.0])
    way = between(parts, np.array([[*one, 0.0]]), np.array([[*other, 4.0]]), share)
    np.testing.assert_allclose(np.rad2deg(np.arctan2(way[0, :, 1], way[0, :, 0])), [-10, 10, 30], atol=1e-9)
    np.testing.assert_allclose(way[0, :, 2], [0, 2, 4])
    sphere = (Part("s", "sphere", 3),)
    ends = np.array([[1.0, 0, 0], [1.0, 0, 0], [0, 0, 1.0]]), np.array([[0, 1.0, 0], [-1.0, 0, 0], [0, 0, 1.0]])
    around = between(sphere, *ends, np.array([0.0, 0.5, 1.0]))
    np.testing.assert_allclose(np.linalg.norm(around, axis=-1), 1)
    np.testing.assert_allclose(around[0, 1], [np.sqrt(0.5), np.sqrt(0.5), 0])
    np.testing.assert_allclose(around[:, 0], ends[0], atol=1e-12)
    np.testing.assert_allclose(around[:, 2], ends[1], atol=1e-12)
    np.testing.assert_allclose(around[2], np.tile(ends[0][2], (3, 1)), atol=1e-12)
