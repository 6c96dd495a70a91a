"""Every KL of a run is taken from the prior that its model has: a flow, or a mixture over classes or values."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from scipy.stats import norm

import unbraid
from tests.training.training_examples import SPACE, blocks
from unbraid import load_run, train
from unbraid.base.types import FloatArray
from unbraid.data.image_dataset import ArrayDataset
from unbraid.runs.live.sliders import sliders
from unbraid.runs.run import Run
from unbraid.runs.run_traversals import traverse

TINY = ArrayDataset(np.ascontiguousarray(blocks().array[:, ::4, ::4]), SPACE)  # 8 x 8
COMMON = {"network": "dense", "steps": 20, "batch_size": 16, "processes": 0, "precision": "float32", "device": "cpu"}
CASES: dict[str, dict[str, Any]] = {
    "beta_tcvae": {"prior": "factorial_flow", "latents": 4, "learning_rate": 0.1, "steps": 15},
    "parted_vae": {"classes": "shade+position_x", "class_latents": 2, "latents": 2, "learning_rate": 0.01},
    "mtd": {"factors": "shade", "content": 2, "value_sigma": 0.5, "learning_rate": 0.01},
}


@pytest.fixture(scope="module", params=CASES)
def run(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Run:
    out: Path = tmp_path_factory.mktemp(request.param)
    return train(request.param, TINY, out=out, **{**COMMON, **CASES[request.param]})[0]


def mixture(values: FloatArray, means: FloatArray, deviations: FloatArray) -> FloatArray:
    return np.log(norm.pdf(values[:, None], means, deviations).mean(axis=1))


def log_prior(run: Run, code: int, values: FloatArray) -> FloatArray:
    """Of one code, from the weights of the model."""
    weights = {name: value.double().numpy() for name, value in run.modules.state_dict().items()}
    if run.config["family"] == "beta_tcvae":
        with torch.no_grad():
            given = torch.from_numpy(values).float()[:, None].expand(-1, 4)
            return run.modules["prior"](given)[:, code].double().numpy()
    if code < 2:
        return norm.logpdf(values)
    if run.config["family"] == "mtd":
        return mixture(values, 100 * weights["value_means.slow"][:, code - 2], np.full(3, 0.5))
    place, dimension = divmod(code - 2, 2)
    classes = slice(0, 3) if place == 0 else slice(3, 12)
    spreads = 2 * np.tanh(weights["priors.spreads"][classes, dimension]) - 1
    return mixture(values, weights["priors.means"][classes, dimension], np.exp(spreads / 2))


def test_the_divergence_kept_with_the_codes_is_that_of_draws_from_the_posterior(run: Run) -> None:
    """E (log q - log p) over 20 000 draws for each of two images and every code."""
    saved = run.codes()
    assert saved.prior_kl is not None
    assert saved.log_variances is not None
    noise = np.random.default_rng(0).standard_normal(20_000)
    for row in (0, 100):
        for code, (mean, log_variance) in enumerate(zip(saved.codes[row], saved.log_variances[row], strict=True)):
            deviation = float(np.exp(log_variance / 2))
            ratios = norm.logpdf(noise) - np.log(deviation) - log_prior(run, code, mean + deviation * noise)
            error = 5 * ratios.std() / np.sqrt(len(noise)) + 1e-4
            assert saved.prior_kl[row, code] == pytest.approx(ratios.mean(), abs=error)


def test_it_is_not_the_divergence_from_the_standard_normal_and_all_that_shows_a_kl_takes_it(run: Run) -> None:
    saved = run.codes()
    kl = saved.mean_kl()
    assert kl is not None
    assert saved.log_variances is not None
    standard = 0.5 * (saved.codes**2 + np.exp(saved.log_variances) - saved.log_variances - 1).mean(axis=0)
    own = slice(0, None) if run.config["family"] == "beta_tcvae" else slice(2, None)
    assert np.abs(kl - standard)[own].max() > 0.1
    np.testing.assert_allclose(kl[: own.start], standard[: own.start], rtol=1e-3, atol=1e-5)
    np.testing.assert_allclose(kl, saved.prior_kl.mean(axis=0) if saved.prior_kl is not None else [], rtol=1e-5)
    shown = {each.codes[0]: each.kl for each in sliders(saved, run.parts)}
    assert [shown[code] for code in range(len(kl))] == pytest.approx(kl.tolist())
    traversed = traverse(load_run(run.path), TINY, rows=1, steps=2)
    assert traversed.kl is not None
    np.testing.assert_allclose(traversed.kl, kl[traversed.codes], rtol=1e-4, atol=1e-6)
    card = unbraid.score(saved, metrics=["elbo_terms"])
    assert card["elbo_terms"].kl == pytest.approx(float(kl.sum()), rel=1e-5)


def test_a_standard_normal_prior_keeps_none(tmp_path: Path) -> None:
    run = train("beta_tcvae", TINY, out=tmp_path, latents=3, **COMMON)[0]
    assert run.codes().prior_kl is None
    assert run.codes().log_variances is not None
