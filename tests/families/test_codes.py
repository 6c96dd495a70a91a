"""Codes and decoded images of every trained family, against plain loops on weights that are set here."""

from collections.abc import Callable
from typing import Any

import pytest
import torch
from torch import Tensor

from tests.families.circles import unit
from tests.families.members import FAMILIES, Weights, coded
from tests.families.plain import decoder, dense, encoder, encoder_of_any
from unbraid.families import encode_vae

Coded = tuple[list[Tensor], list[Tensor] | None]
Images = list[Tensor]


def gaussian_codes(weights: Weights, images: Images) -> Coded:
    outputs = [encoder(weights, "vae.encoder", image) for image in images]
    half = len(outputs[0]) // 2
    return [each[:half] for each in outputs], [each[half:] for each in outputs]


def circle_codes(weights: Weights, images: Images) -> Coded:
    """Two circles, their times, then means and log-variances of three lines."""
    outputs = [encoder(weights, "vae.encoder", image) for image in images]
    return [torch.cat([unit(each[:2]), unit(each[2:4]), each[6:9]]) for each in outputs], None


def sphere_codes(weights: Weights, images: Images) -> Coded:
    return [unit(encoder(weights, "encoder", image)) for image in images], None


def point_codes(weights: Weights, images: Images) -> Coded:
    return [encoder(weights, "encoder", image) for image in images], None


def critic_codes(weights: Weights, images: Images) -> Coded:
    """Q's means, of images spread to [-1, 1]."""
    return [encoder_of_any(weights, "critic", 2 * image - 1)[1:] for image in images], None


def forward_codes(weights: Weights, images: Images) -> Coded:
    """Both pass through SELU; the second is the logarithm of the standard deviation."""
    outputs = [torch.selu(encoder(weights, "vae.encoder", image)) for image in images]
    half = len(outputs[0]) // 2
    return [each[:half] for each in outputs], [2 * each[half:] for each in outputs]


def parted_codes(weights: Weights, images: Images) -> Coded:
    """z, then u under the likeliest class and a mask of slope 8."""
    means, log_variances = [], []
    for image in images:
        outputs = encoder(weights, "trunk", image)
        features = torch.where(outputs > 0, outputs, 0.1 * outputs)
        logits = dense(weights, "classes", features)
        likeliest = torch.zeros(3, dtype=torch.float64)
        likeliest[int(logits.argmax())] = 1
        mask = 1 / (1 + torch.exp(-8 * dense(weights, "heads.masks.0", likeliest)))
        z, u = dense(weights, "heads.latents", features), dense(weights, "heads.parts.0", features * mask)
        means.append(torch.cat([z[:2], u[:2]]))
        log_variances.append(torch.cat([z[2:], u[2:]]))
    return means, log_variances


def quantized_codes(weights: Weights, images: Images) -> Coded:
    """The nearest value of each latent's own codebook, or of the one that all share."""
    codes = []
    for image in images:
        code = []
        for place, latent in enumerate(encoder(weights, "encoder", image)):
            books = weights["codebook.values"]
            distances = {abs(float(value) - float(latent)): value for value in books[place % len(books)]}
            code.append(distances[min(distances)])
        codes.append(torch.stack(code))
    return codes, None


VAE = (gaussian_codes, "vae.decoder", {"latents": 3})
CASES: dict[str, tuple[Callable[[Weights, Images], Coded], str, dict[str, Any]]] = {
    **{name: VAE for name, row in FAMILIES.items() if row.encode is encode_vae},
    "mtd": (gaussian_codes, "vae.decoder", {"factors": "shape"}),
    "info_gan": (critic_codes, "generator", {"latents": 3}),
    "delta_vae": (circle_codes, "vae.decoder", {"euclidean": 3}),
    "lsbd_vae": (circle_codes, "vae.decoder", {"euclidean": 3, "pairs": 10}),
    "quessard": (sphere_codes, "decoder", {"latents": 3}),
    "forward_vae": (forward_codes, "vae.decoder", {}),
    "parted_vae": (parted_codes, "decoder", {"latents": 2, "class_latents": 2, "features": 5}),
    "weak_de": (point_codes, "decoder", {"labels": 60}),
    "qlae": (quantized_codes, "decoder", {"latents": 3, "values": 4}),
    "qvae": (quantized_codes, "decoder", {"latents": 3, "values": 4}),
}
SQUASHED = {"quessard", "forward_vae"}  # have no choice of likelihood


@pytest.mark.parametrize(("family", "likelihood"), [
    (family, likelihood) for family in CASES for likelihood in ("bernoulli", "gaussian")
    if likelihood == "bernoulli" or family not in SQUASHED
])  # fmt: skip
def test_codes_and_decoded_images(family: str, likelihood: str) -> None:
    encode, name, settings = CASES[family]
    given = {} if family in SQUASHED else {"likelihood": likelihood}
    found = coded(family, **settings, **given)
    means, log_variances = encode(found.weights, list(found.images))
    torch.testing.assert_close(found.codes, torch.stack(means))
    if log_variances is None:
        assert found.log_variances is None
    else:
        torch.testing.assert_close(found.log_variances, torch.stack(log_variances))
    for codes, image in zip(found.codes, found.decoded, strict=True):
        outputs = decoder(found.weights, name, codes)
        expected = 1 / (1 + torch.exp(-outputs)) if likelihood == "bernoulli" else outputs
        torch.testing.assert_close(image.flatten(), expected)


LATENTS = [("latents", "gaussian", 3)]
PARTS = {
    "mtd": [("content", "gaussian", 4), ("shape", "gaussian", 2)],
    "delta_vae": [("circle 0", "circle", 2), ("circle 1", "circle", 2), ("euclidean", "gaussian", 3)],
    "lsbd_vae": [("angle", "circle", 2), ("hue", "circle", 2), ("euclidean", "gaussian", 3)],
    "quessard": [("z", "sphere", 3)],
    "forward_vae": [("latents", "gaussian", 4)],
    "parted_vae": [("z", "gaussian", 2), ("shape", "gaussian", 2)],
    "weak_de": [("z", "point", 8)],
    "qlae": [("latents", "quantized", 3)],
    "qvae": [("latents", "quantized", 3)],
}


@pytest.mark.parametrize("family", CASES)
def test_what_the_codes_are(family: str) -> None:
    assert coded(family, **CASES[family][2]).parts == PARTS.get(family, LATENTS)


def test_every_family_is_coded() -> None:
    assert {*CASES, "pca"} == set(FAMILIES)
