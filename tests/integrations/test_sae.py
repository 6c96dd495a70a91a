"""Sparse autoencoders beside true features: by plain loops, by hand, and as SAEBench wants its record."""

import json
from typing import Any

import numpy as np
import pytest
import torch
from scipy import sparse
from scipy.optimize import linear_sum_assignment
from sklearn.metrics import accuracy_score, f1_score, precision_score, r2_score, recall_score

from unbraid.base.types import FloatArray
from unbraid.datasets.superposition import superposition
from unbraid.families.dictionaries import train_dictionary
from unbraid.integrations.sae import score_dictionary
from unbraid.metrics import feature_recovery

RNG = np.random.default_rng(0)


class Linear:
    """A sparse autoencoder in NumPy: relu(x W'), as most are."""

    def __init__(self, W_dec: FloatArray) -> None:  # noqa: N803
        self.W_dec = W_dec

    def encode(self, x: FloatArray) -> FloatArray:
        return np.maximum(x @ self.W_dec.T - 0.2, 0.0)

    def decode(self, z: FloatArray) -> FloatArray:
        return z @ self.W_dec


class OfLayers(torch.nn.Module):
    """The layers of dictionary_learning's AutoEncoder: the decoder is a linear one with a column for each latent."""

    def __init__(self, W_dec: FloatArray) -> None:  # noqa: N803
        super().__init__()
        n_latents, n_dimensions = W_dec.shape
        self.encoder = torch.nn.Linear(n_dimensions, n_latents)
        self.decoder = torch.nn.Linear(n_latents, n_dimensions, bias=False)
        with torch.no_grad():
            self.encoder.weight.copy_(torch.from_numpy(W_dec))
            self.encoder.bias.fill_(-0.2)
            self.decoder.weight.copy_(torch.from_numpy(W_dec.T))

    def encode(self, x: torch.Tensor) -> torch.Tensor:
        return torch.relu(self.encoder(x))

    def decode(self, z: torch.Tensor) -> torch.Tensor:
        return self.decoder(z)


@pytest.mark.parametrize("wrapped", [np.asarray, sparse.csr_array, sparse.csc_array])
def test_every_number_by_scikit_learn_and_loops(wrapped: Any) -> None:
    features, dictionary = RNG.standard_normal((7, 5)), RNG.standard_normal((9, 5))
    firing = np.where(RNG.random((300, 7)) < 0.3, RNG.uniform(0.5, 2.0, (300, 7)), 0.0)
    codes = np.where(RNG.random((300, 9)) < 0.4, RNG.uniform(0.1, 1.0, (300, 9)), 0.0)
    codes[:, 4] = 0.0
    x, decoded = RNG.standard_normal((2, 300, 5))
    found = feature_recovery(
        dictionary, features, codes=wrapped(codes), firing=wrapped(firing), activations=x, reconstructions=decoded
    )
    cosines = np.abs([[d @ f / np.linalg.norm(d) / np.linalg.norm(f) for f in features] for d in dictionary])
    assert found.mcc == pytest.approx(cosines[linear_sum_assignment(-cosines)].mean())
    best = cosines.argmax(axis=1)
    assert found.uniqueness == len(set(best)) / 9
    pairs = [(firing[:, best[i]] > 0, codes[:, i] > 0) for i in range(9)]
    for name, score in (("precision", precision_score), ("recall", recall_score), ("f1", f1_score)):
        expected = [score(*pair, zero_division=0) for pair in pairs]
        np.testing.assert_allclose(getattr(found, f"{name}_per_latent"), expected)
        assert getattr(found, name) == pytest.approx(np.mean(expected))
    assert found.accuracy == pytest.approx(np.mean([accuracy_score(*pair) for pair in pairs]))
    assert (found.n_dead, found.l0, found.true_l0) == (1, (codes > 0).sum() / 300, (firing > 0).sum() / 300)
    assert found.l1 == pytest.approx(codes.sum() / 300)
    assert found.shrinkage == pytest.approx(np.mean(np.linalg.norm(decoded, axis=1) / np.linalg.norm(x, axis=1)))
    assert found.explained_variance == pytest.approx(r2_score(x, decoded, multioutput="variance_weighted"))


def test_numbers_are_those_of_saelens() -> None:
    """Printed by `sae_lens.synthetic.evals` 6.54.12 on these arrays in double precision; it counts in single."""
    rng = np.random.default_rng(5)
    features, dictionary = rng.standard_normal((7, 5)), rng.standard_normal((9, 5))
    firing = np.where(rng.random((300, 7)) < 0.3, rng.uniform(0.5, 2.0, (300, 7)), 0.0)
    codes = np.where(rng.random((300, 9)) < 0.4, rng.uniform(0.1, 1.0, (300, 9)), 0.0)
    found = feature_recovery(dictionary, features, codes=codes, firing=firing)
    assert (found.mcc, found.uniqueness) == pytest.approx((0.6402870121911699, 2 / 3), abs=1e-12)
    theirs = (0.32435905933380127, 0.42424917221069336, 0.36607980728149414, 0.5592592358589172)
    assert (found.precision, found.recall, found.f1, found.accuracy) == pytest.approx(theirs, abs=2e-7)


def test_an_autoencoder_of_saelens_has_their_own_numbers() -> None:
    synthetic = pytest.importorskip("sae_lens.synthetic")
    topk = pytest.importorskip("sae_lens.saes.topk_sae")
    torch.manual_seed(0)
    sae = topk.TopKTrainingSAE(topk.TopKTrainingSAEConfig(d_in=32, d_sae=48, k=4))
    features = synthetic.FeatureDictionary(num_features=40, hidden_dim=32)
    firing = synthetic.ActivationGenerator(num_features=40, firing_probabilities=torch.full((40,), 0.1)).sample(2000)
    drawn = type("Drawn", (), {"sample": lambda _, n: firing[:n]})()
    theirs = synthetic.evals.eval_sae_on_synthetic_data(sae, features, drawn, num_samples=2000)
    ours = score_dictionary(
        sae, features.feature_vectors.detach(), activations=features(firing).detach(), firing=firing
    )
    for name, expected in {
        "mcc": theirs.mcc, "uniqueness": theirs.uniqueness, "n_dead": theirs.dead_latents, "l0": theirs.sae_l0,
        "true_l0": theirs.true_l0, "shrinkage": theirs.shrinkage, "explained_variance": theirs.explained_variance,
        "precision": theirs.classification.precision, "recall": theirs.classification.recall,
        "f1": theirs.classification.f1_score, "accuracy": theirs.classification.accuracy,
    }.items():  # fmt: skip
        assert getattr(ours, name) == pytest.approx(expected, abs=1e-6)


def test_chance_of_f1_is_what_latents_have_that_fire_at_random() -> None:
    features = np.eye(4)
    firing = (RNG.random((4000, 4)) < [0.1, 0.2, 0.3, 0.4]) * 1.0
    codes = (RNG.random((4000, 4)) < [0.4, 0.3, 0.2, 0.1]) * 1.0
    found = feature_recovery(features, features, codes=codes, firing=firing)
    assert found.f1_chance is not None
    assert found.f1 == pytest.approx(found.f1_chance, abs=0.02)
    assert found.f1_chance == pytest.approx(np.mean([0.16, 0.24, 0.24, 0.16]), abs=0.02)


@pytest.mark.parametrize("given", [np.asarray, lambda codes: torch.from_numpy(codes).to_sparse()])
def test_half_precision_and_tensors_are_scored_as_arrays_are(given: Any) -> None:
    activations = np.abs(RNG.standard_normal((40, 4))).astype(np.float16)
    sae = Linear(np.eye(4))
    codes = sae.encode(activations).astype(np.float16)
    sae.encode = lambda _: codes
    found = score_dictionary(sae, np.eye(4), activations=activations)
    known = score_dictionary(sae, np.eye(4), activations=activations, codes=given(codes))
    assert found.l0 == known.l0 == (codes > 0).sum() / 40
    assert found.l1 == known.l1 == pytest.approx(codes.astype(float).sum() / 40)


def test_features_fire_as_often_as_asked_together_and_with_their_parent() -> None:
    plain = superposition(16, 8, 20_000, rate=0.1, correlation=0.8, group=4, noise=0.1)
    there = plain.firing > 0
    assert there.mean() == pytest.approx(0.1, abs=0.005)
    together = np.corrcoef(there.T)
    assert together[0, 1] > 0.4
    assert abs(together[0, 4]) < 0.03
    np.testing.assert_allclose(np.linalg.norm(plain.features, axis=1), 1.0, rtol=1e-5)
    left = plain.activations - plain.firing @ plain.features
    assert left.std() == pytest.approx(0.1, rel=0.02)
    strengths = plain.firing[there]
    assert (strengths.min(), strengths.max(), strengths.mean()) == pytest.approx((0.5, 1.5, 1.0), abs=0.01)
    tree = superposition(16, 8, 20_000, rate=0.09, group=4, hierarchical=True).firing > 0
    assert tree[:, 0].mean() == pytest.approx(0.3, abs=0.01)
    assert tree[:, [1, 2, 3]].mean() == pytest.approx(0.09, abs=0.005)
    assert not (tree[:, 5] & ~tree[:, 4]).any()


def test_the_true_dictionary_is_found_and_chance_is_beside_it() -> None:
    drawn = superposition(32, 64, 2000, rate=0.05)
    found = score_dictionary(Linear(drawn.features), drawn.features, activations=drawn.activations, firing=drawn.firing)
    assert found.mcc == pytest.approx(1.0)
    assert found.uniqueness == 1.0
    assert found.mcc_chance < 0.4
    assert found.f1 > 2 * found.f1_chance
    given = score_dictionary(
        Linear(drawn.features),
        drawn.features,
        activations=drawn.activations,
        firing=drawn.firing,
        codes=sparse.csr_array(Linear(drawn.features).encode(drawn.activations)),
        batch_size=300,
    )
    assert (given.f1, given.explained_variance) == pytest.approx((found.f1, found.explained_variance), rel=1e-5)


@pytest.mark.lengthy
@pytest.mark.parametrize("sparsity", ["topk", "batch_topk", "jump_relu"])
def test_trained_dictionaries_find_most_features_in_superposition(sparsity: Any) -> None:
    """24 features in 16 dimensions, of which 1.2 are present in a row."""
    drawn = superposition(24, 16, 8000, rate=0.05)
    x = 3.0 * drawn.activations + 5.0
    sae = train_dictionary(x, 24, sparsity=sparsity, k=2, steps=1000, batch_size=256, learning_rate=3e-3)
    found = score_dictionary(sae, drawn.features, activations=x, firing=drawn.firing)
    assert found.mcc > 0.85
    assert found.mcc > found.mcc_chance + 0.25
    assert found.explained_variance > 0.8
    assert found.f1 > 0.5
    assert found.f1 > 3 * found.f1_chance
    assert found.l0 < 4


def test_the_weight_of_a_linear_decoder_is_taken_where_there_is_no_w_dec() -> None:
    drawn = superposition(12, 8, 500, rate=0.1)
    found = score_dictionary(
        OfLayers(drawn.features), drawn.features, activations=drawn.activations, firing=drawn.firing
    )
    expected = score_dictionary(
        Linear(drawn.features), drawn.features, activations=drawn.activations, firing=drawn.firing
    )
    for name in ("mcc", "uniqueness", "l0", "f1", "explained_variance"):
        assert getattr(found, name) == pytest.approx(getattr(expected, name), abs=1e-5), name


def core_schema() -> dict[str, set[str]]:
    """The categories and numbers that SAEBench 0.6 demands of its core evaluation, by its documentation."""
    return {
        "model_behavior_preservation": {"kl_div_score", "kl_div_with_ablation", "kl_div_with_sae"},
        "model_performance_preservation": {
            *("ce_loss_score", "ce_loss_with_ablation", "ce_loss_with_sae", "ce_loss_without_sae")
        },
        "reconstruction_quality": {"explained_variance", "explained_variance_legacy", "mse", "cossim"},
        "shrinkage": {"l2_norm_in", "l2_norm_out", "l2_ratio", "relative_reconstruction_bias"},
        "sparsity": {"l0", "l1"},
        "token_stats": {"total_tokens_eval_reconstruction", "total_tokens_eval_sparsity_variance"},
        "misc_metrics": {
            *("freq_over_1_percent", "freq_over_10_percent", "normalized_freq_over_1_percent"),
            *("normalized_freq_over_10_percent", "average_max_encoder_cosine_sim", "average_max_decoder_cosine_sim"),
            "frac_alive",
        },
    }


def test_the_record_has_what_saebench_demands() -> None:
    drawn = superposition(12, 24, 500, rate=0.1)
    found = score_dictionary(Linear(drawn.features), drawn.features, activations=drawn.activations, firing=drawn.firing)
    record = json.loads(json.dumps(found.to_saebench({"d_sae": 12}, name="mine")))
    assert {category: set(values) for category, values in record["eval_result_metrics"].items()} == core_schema()
    for values in record["eval_result_metrics"].values():
        assert all(isinstance(each, int | float) and np.isfinite(each) for each in values.values())
    texts = ("eval_type_id", "eval_id", "sae_bench_commit_hash", "sae_lens_id")
    assert all(isinstance(record[each], str) for each in texts)
    assert isinstance(record["datetime_epoch_millis"], int)
    assert record["sae_cfg_dict"] == {"d_sae": 12}
    assert record["eval_result_details"] == []
    assert {"sae_lens_release_id", "sae_lens_version", "eval_config"} <= set(record)
    assert record["eval_result_unstructured"]["feature_recovery"]["mcc"] == found.mcc
    z = Linear(drawn.features).encode(drawn.activations)
    rates, metrics = (z > 0).mean(axis=0), record["eval_result_metrics"]
    assert metrics["misc_metrics"]["freq_over_10_percent"] == (rates > 0.1).mean()
    assert metrics["misc_metrics"]["normalized_freq_over_10_percent"] == pytest.approx(
        rates[rates > 0.1].sum() / rates.sum()
    )
    x, decoded = drawn.activations, z @ drawn.features
    cosines = [a @ b / np.linalg.norm(a) / np.linalg.norm(b) for a, b in zip(x, decoded, strict=True) if b.any()]
    assert metrics["reconstruction_quality"]["cossim"] == pytest.approx(np.mean(cosines), rel=1e-4)
    assert metrics["shrinkage"]["relative_reconstruction_bias"] == pytest.approx(
        (decoded**2).sum() / (x * decoded).sum(), rel=1e-4
    )


def test_a_dictionary_of_torch_keeps_its_type() -> None:
    drawn = superposition(8, 16, 200, rate=0.2)
    sae = train_dictionary(drawn.activations, 8, steps=5).double()
    found = score_dictionary(sae, drawn.features, activations=drawn.activations)
    assert found.f1 is None
    z = sae.encode(torch.from_numpy(drawn.activations.astype(float)))
    assert found.l0 == pytest.approx(float((z > 0).sum(dim=1).double().mean()))
