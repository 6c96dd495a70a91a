"""Presets, defaults, optimisers and initial values against the tables of the papers, by number."""

import inspect
import math
from typing import Any

import pytest
import torch

import unbraid
from tests.families.members import FAMILIES, untrained

UDR = "udr"
SQUARES = {"likelihood": "gaussian", "sigma": math.sqrt(1 / 8)}  # DCI's code: |2x - 2y|^2 = |x - y|^2 / (2 sigma^2)
HALVED = {"likelihood": "gaussian", "sigma": math.sqrt(1 / 2)}  # |x - y|^2 = |x - y|^2 / (2 sigma^2)
# UDR table 3; LSBD sections 6 and F.2, tables 3 and 4 (four latents on Square, Arrow and Airplane); DCI section 5.
PRESETS: dict[str, dict[str, list[dict[str, Any]]]] = {
    "vae": {"dci": [{"network": "resnet", **SQUARES}], "lsbd": [{"latents": 4}]},
    "beta_vae": {
        UDR: [{"beta": 1}, {"beta": 2}, {"beta": 4}, {"beta": 6}, {"beta": 8}, {"beta": 16}],
        "dci": [{"network": "resnet", "beta": 6, **SQUARES}],
        "lsbd": [{"latents": 4, "beta": 5}],
    },
    "cci_vae": {
        UDR: [{"c_max": 5}, {"c_max": 10}, {"c_max": 25}, {"c_max": 50}, {"c_max": 75}, {"c_max": 100}],
        "lsbd": [{"latents": 4, "c_max": 15, "capacity_steps": 3500}],
    },
    "factor_vae": {
        UDR: [{"gamma": 10}, {"gamma": 20}, {"gamma": 30}, {"gamma": 40}, {"gamma": 50}, {"gamma": 100}],
        "lsbd": [{"latents": 4, "gamma": 1}],
    },
    "beta_tcvae": {UDR: [{"beta": 1}, {"beta": 2}, {"beta": 4}, {"beta": 6}, {"beta": 8}, {"beta": 10}]},
    "dip_vae_i": {
        UDR: [
            {"lambda_od": od, "lambda_d": d} for od, d in ((1, 10), (2, 20), (5, 50), (10, 100), (20, 200), (50, 500))
        ],
        "lsbd": [{"latents": 4, "lambda_od": 1, "lambda_d": 10}],
    },
    "dip_vae_ii": {
        UDR: [{"lambda_od": od, "lambda_d": od} for od in (1, 2, 5, 10, 20, 50)],
        "lsbd": [{"latents": 4, "lambda_od": 1, "lambda_d": 1}],
    },
    "info_gan": {"dci": [{"network": "resnet", "information_weight": 6}]},
    "ada_gvae": {"lsbd": [{"latents": 4, "changed": 2}]},
    "ada_ml_vae": {"lsbd": [{"latents": 4, "changed": 2}]},
    "delta_vae": {
        "lsbd": [{"circles": 2, "euclidean": 0}],
        "lsbd_objects": [{"circles": 1, "euclidean": 5, "log_t_high": -5}],
    },
    "lsbd_vae": {
        "lsbd_pairs": [{"pairs": n} for n in (0, 256, 512, 768, 1024, 1280, 1536, 1792, 2048)],
        "lsbd_paths": [{"supervision": "paths"}],
        "lsbd_objects": [{"supervision": "turntables", "gamma": 1, "euclidean": 5, "log_t_high": -5}],
    },
    # main.py and training.py of Hajimiri et al.: `ReduceLROnPlateau` in both.
    "parted_vae": {
        "unsupervised": [{"schedule": "plateau"}],
        "semi_supervised": [{"labels": 10_000, "schedule": "plateau"}],
    },
    "weak_de": {"sprites": [{"classes": "shape+position_x+position_y"}]},
    # configs/params/quantized_ae of Hsu et al.: two latents per factor; less weight decay on MPI3D.
    "qlae": {"shapes3d": [{"latents": 12}], "mpi3d": [{"latents": 14, "weight_decay": 0.001}]},
    # configs/{Shapes3D,MPI3DComplex}/qvae.yaml of Baykal et al.: means of squares of 64 x 64 x 3 pixels, and of KLs.
    "qvae": {
        "shapes3d": [{**HALVED, "latents": 12, "beta": 1.024}],
        "mpi3d": [{**HALVED, "latents": 14, "beta": pytest.approx(0.6144 / 14)}],
    },
}

COMMON = {
    "latents": 10,
    "network": "conv",
    "likelihood": "bernoulli",
    "sigma": 1,
    "learning_rate": 1e-4,
}  # UDR table 4a
CIRCLES = {
    "learning_rate": 1e-3, "log_t_low": -10, "log_t_high": -9, "log_t_base": "e", "walk_steps": 10, "circles": 0,
    "euclidean": -1, "likelihood": "bernoulli",
}  # fmt: skip
DEFAULTS: dict[str, dict[str, Any]] = {
    "vae": COMMON,
    "beta_vae": COMMON,
    "cci_vae": {**COMMON, "gamma": 1000, "capacity_steps": 100_000, "c_max": 25},  # UDR table 3; Burgess et al.
    "factor_vae": {
        **COMMON, "discriminator_learning_rate": 1e-4, "discriminator_width": 1000, "discriminator_depth": 6,
    },
    "beta_tcvae": {**COMMON, "alpha": 1, "gamma": 1, "estimator": "weighted", "prior": "normal"},
    "dip_vae_i": {**COMMON, "lambda_od": 10, "lambda_d": 100},
    "dip_vae_ii": {**COMMON, "lambda_od": 10, "lambda_d": 10},
    # DCI section 5 and appendix A; Gulrajani et al. 2017, algorithm 1.
    "info_gan": {"latents": 10, "learning_rate": 1e-4, "information_weight": 6, "gradient_weight": 10},
    "pca": {"latents": 10},
    # configs/train_ae.yaml and model_partial/quantized_ae.yaml of Hsu et al.; configs/*/qvae.yaml of Baykal et al.
    "qlae": {
        **COMMON, "learning_rate": 1e-3, "values": 10, "quantization_weight": 0.01, "commitment_weight": 0.01,
        "weight_decay": 0.1,
    },
    "qvae": {**COMMON, "learning_rate": 1e-3, "values": 64, "temperature": 1, "beta": 1},
    "ada_gvae": {**COMMON, "beta": 1, "rule": "one-or-k", "changed": 0},
    "ada_ml_vae": {**COMMON, "beta": 1, "rule": "one-or-k", "changed": 0},
    "delta_vae": CIRCLES,
    # Section 6: gamma 100; paths of 100 images, 3 / 64 of a turn each step.
    "lsbd_vae": {
        **CIRCLES, "gamma": 100, "paths": 50, "path_length": 100, "path_step": 3, "anchor": "samples",
        "supervision": "pairs",
    },
    # The authors' Flatland and teapot notebooks; LSBD table 3.
    "quessard": {
        "latents": 4, "learning_rate": 1e-3, "angle_speed": 10, "entanglement_weight": 0.01, "trajectory_length": 5,
        "trajectories_at_once": 16, "trajectories": 48_000, "action_step": 1,
    },
    "forward_vae": {"learning_rate": 1e-3, "beta": 1, "transitions": 10_000, "action_step": 1},
    # The authors' main.py, dSprites.
    "parted_vae": {
        "latents": 5, "class_latents": 1, "learning_rate": 5e-4, "features": 256, "mask_steps": 7 / 2e-4,
        "z_capacity": 30, "u_capacity": 5, "capacity_steps": 300_000, "gamma_z": 50, "gamma_u": 50, "gamma_c": 100,
        "gamma_h": 10, "gamma_bc": 10, "threshold": 0.1, "labels": 0,
    },
    # The authors' dSprites/config.py: 1 000 of 6 000 epochs of warm-up, 20 batches of 1 024 (about) with labels.
    "weak_de": {
        "latents": 8, "learning_rate": 1e-4, "adversarial_learning_rate": 1e-4, "adversary_width": 1024,
        "adversary_depth": 4, "spread": 0.1, "warmup": 1 / 6, "bins": 3, "labels": 20_000,
    },
    # Chosen here: the paper's are not public.
    "mtd": {"content": 4, "block_size": 2, "value_sigma": 1, "distance": 4, "swap_weight": 0},
}  # fmt: skip

ADAM = ("learning_rate", 0.9, 0.999, 1e-8)  # UDR table 4a
PLAYERS: dict[str, list[tuple[Any, ...]]] = {
    "factor_vae": [("vae", 1, *ADAM), ("discriminator", 1, "discriminator_learning_rate", 0.5, 0.9, 1e-8)],  # 4c
    "info_gan": [("critic", 5, "learning_rate", 0, 0.9, 1e-8), ("generator", 1, "learning_rate", 0, 0.9, 1e-8)],
    "lsbd_vae": [("groups", 1, *ADAM), ("images", 1, *ADAM)],
    "quessard": [("model", 1, *ADAM)],
    "parted_vae": [("labels", 1, *ADAM), ("vae", 1, *ADAM)],
    "weak_de": [
        ("autoencoder", 1, *ADAM), ("relations", 1, *ADAM),
        ("generator", 1, "adversarial_learning_rate", *ADAM[1:]),
        ("discriminator", 1, "adversarial_learning_rate", *ADAM[1:]),
    ],
    "pca": [],
    "qlae": [("autoencoder", 1, *ADAM)],
}  # fmt: skip


@pytest.mark.parametrize("family", FAMILIES)
def test_presets_are_the_published_grids(family: str) -> None:
    found = {name: [dict(settings) for settings in grid] for name, grid in FAMILIES[family].presets.items()}
    # UDR's models are the checkpoints of disentanglement_lib (section 5), LSBD's baselines were trained with it
    # (section 6), LSBD-VAE with Keras: the layers of both are TensorFlow's, with the default initialiser.
    glorot = {"initialisation": "glorot"}
    expected = {
        name: [{**settings, **(glorot if name.startswith((UDR, "lsbd")) else {})} for settings in grid]
        for name, grid in PRESETS.get(family, {}).items()
    }
    assert found == expected


@pytest.mark.parametrize("family", FAMILIES)
def test_defaults_are_the_published_ones(family: str) -> None:
    known = FAMILIES[family].hyperparameters
    found = {name: known[name].default for name in DEFAULTS[family]}
    expected = DEFAULTS[family].items()
    assert found == {name: value if isinstance(value, str) else pytest.approx(value) for name, value in expected}


@pytest.mark.parametrize("family", FAMILIES)
def test_players_have_the_published_optimisers(family: str) -> None:
    found = [
        (each.name, each.repeats, each.adam.learning_rate, each.adam.beta1, each.adam.beta2, each.adam.epsilon)
        for each in FAMILIES[family].optimizer_steps
    ]
    assert found == PLAYERS.get(family, [("vae", 1, *ADAM)])


def test_only_the_qlae_has_weight_decay() -> None:
    found = {name: {each.adam.weight_decay for each in row.optimizer_steps} for name, row in FAMILIES.items()}
    assert found == {name: {"weight_decay"} if name == "qlae" else {0.0} for name in FAMILIES} | {"pca": set()}


def test_a_batch_has_64_images() -> None:
    assert inspect.signature(unbraid.train).parameters["batch_size"].default == 64  # UDR table 4a; DCI appendix A


def test_every_family_is_held_to_its_tables() -> None:
    assert DEFAULTS.keys() == FAMILIES.keys()


# Initial values that the published code chooses.


def test_blocks_of_the_forward_vae_start_at_ones() -> None:
    blocks = untrained("forward_vae")["actions.blocks"]
    assert blocks.shape == (4, 2, 2)
    assert bool((blocks == 1).all())


def test_angles_start_uniform_on_a_quarter_turn_either_way_for_four_dimensions() -> None:
    """U(-pi / n, pi / n), in parameters divided by their speed."""
    angles = 10 * torch.cat(
        [untrained("quessard", seed)["actions.parameters_of_angles"].flatten() for seed in range(40)]
    )
    assert len(angles) == 40 * 4 * 6
    assert 0.99 * math.pi / 4 < angles.max().item() <= math.pi / 4
    assert -math.pi / 4 <= angles.min().item() < -0.99 * math.pi / 4
    assert angles.std().item() == pytest.approx(math.pi / 4 / math.sqrt(3), rel=0.05)


@pytest.mark.parametrize(("family", "names", "spread", "settings"), [
    ("beta_tcvae", ("prior.u", "prior.w", "prior.b"), 0.02, {"prior": "factorial_flow"}),
    ("parted_vae", ("priors.means",), 1.0, {}),
    ("parted_vae", ("priors.spreads",), 1.0, {}),
    ("mtd", ("value_means.slow",), 1 / 100, {}),
    ("qvae", ("codebook.values",), 1.0, {}),
])  # fmt: skip
def test_learned_priors_start_at_normal_values(
    family: str, names: tuple[str, ...], spread: float, settings: Any
) -> None:
    for name in names:
        values = torch.cat([untrained(family, seed, **settings)[name].flatten() for seed in range(100)])
        assert abs(values.mean().item()) < 5 * spread / math.sqrt(len(values))
        assert abs(values.std().item() / spread - 1) < 5 / math.sqrt(2 * len(values))


def test_there_are_32_layers_of_flow_for_each_latent() -> None:
    weights = untrained("beta_tcvae", prior="factorial_flow")
    assert [tuple(weights[f"prior.{name}"].shape) for name in "uwb"] == [(32, 10)] * 3  # section 5.4
