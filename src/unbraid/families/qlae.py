"""QLAE: an autoencoder each of whose latents takes one of a few values of its own, under strong weight decay."""

from typing import Any

import torch
from torch import Tensor, nn

from unbraid.families.codebook import Codebook, codebook_of, draw_values, encode_quantized, quantized_parts
from unbraid.families.common import COMMON, IMAGES, decode_plain, in_half_precision, reconstruction_term
from unbraid.families.family import (
    Adam,
    Batch,
    Context,
    Family,
    Hyper,
    Hyperparameter,
    LossOutput,
    OptimizerStep,
    Settings,
    whole,
)
from unbraid.families.networks import Shape, network_pair, promote


def evenly_spaced(n_latents: int, n_values: int) -> Tensor:
    """(n_latents, n_values) from -1/2 to 1/2, the same for each latent."""
    return torch.linspace(-0.5, 0.5, n_values).repeat(n_latents, 1)


def build_qlae(shape: Shape, settings: Settings) -> nn.ModuleDict:
    """An encoder, a decoder and a codebook per latent."""
    latents = settings["latents"]
    encoder, decoder = network_pair(settings["network"], shape, latents, latents)
    codebook = Codebook(evenly_spaced(latents, settings["values"]))
    return nn.ModuleDict({"encoder": encoder, "decoder": decoder, "codebook": codebook})


def qlae_loss(modules: nn.ModuleDict, batch: Batch, hyper: Hyper, step: Any, context: Context) -> LossOutput:
    """Reconstruction with the quantization and the commitment term; nats per image.

    The two are means over latents and images, equal but for their gradients: in the one the latents are constants, in
    the other their values.

    Reference:
        Hsu et al. 2023, section 3. The weights are those of the authors' code, which takes the mean over pixels; the
        sum over pixels asks for as many times the weights.
    """
    images = batch["images"]
    latents = promote(modules["encoder"](images))
    quantized = codebook_of(modules).nearest(latents)
    straight_through = latents + (quantized - latents).detach()  # gradients pass as if latents were not quantized
    decoded = promote(modules["decoder"](straight_through))
    fit = reconstruction_term(decoded, images, hyper, context.settings).mean()
    quantization = (latents.detach() - quantized).square().mean()
    commitment = (latents - quantized.detach()).square().mean()
    distances = hyper["quantization_weight"] * quantization + hyper["commitment_weight"] * commitment
    loss = fit + images[0].numel() * distances
    return loss, {"reconstruction": fit, "quantization": quantization, "commitment": commitment}, {}


WEIGHT = "weight of the squared distance {}, per number in an image"

QLAE = Family(
    title="QLAE, quantized-latent autoencoder",
    build=build_qlae,
    optimizer_steps=(
        OptimizerStep(
            "autoencoder",
            ("encoder", "decoder", "codebook"),
            qlae_loss,
            (IMAGES,),
            Adam(weight_decay="weight_decay"),
        ),
    ),
    hyperparameters={
        **COMMON,
        "learning_rate": Hyperparameter(1e-3, "of Adam", 0.0, 1.0),
        "values": whole(10, "values that each latent can take", 2, 10_000),
        "quantization_weight": Hyperparameter(0.01, WEIGHT.format("of values from latents"), 0.0, 1e6),
        "commitment_weight": Hyperparameter(0.01, WEIGHT.format("of latents from values"), 0.0, 1e6),
        "weight_decay": Hyperparameter(
            0.1, "of the layers' weights, decoupled as in AdamW; biases and values do not decay", 0.0, 1e3
        ),
    },
    encode=encode_quantized,
    decode=decode_plain,
    draw_prior=draw_values,
    source="Hsu et al. 2023, section 3",
    cites=("hsu2023disentanglement",),
    formula=(
        r"-\log p(x|\hat{z}) + n \left( \lambda_q \frac{1}{D} \sum_j (\mathrm{sg}[z_j] - \hat{z}_j)^2 + \lambda_c "
        r"\frac{1}{D} \sum_j (z_j - \mathrm{sg}[\hat{z}_j])^2 \right), \qquad \hat{z}_j = \mathrm{argmin}_{v \in "
        "V_j} | z_j - v |",
        "$z$ is what the encoder says, $V_j$ the learned values of latent $j$, and $n$ the count of numbers in "
        r"an image. $\mathrm{sg}$ passes no gradient on, and the reconstruction's gradient by $\hat{z}$ is passed "
        "on to $z$. Strong weight decay is a part of the method.",
    ),
    diverges_when_stacked=in_half_precision,
    parts=quantized_parts,
    presets={"shapes3d": ({"latents": 12},), "mpi3d": ({"latents": 14, "weight_decay": 0.001},)},
    notes=(
        "Codes are the quantized latents: of each image the values nearest to the encoder's outputs. Traversals go "
        "over the values that images take.",
        "Defaults are the authors', who take twice as many latents as there are factors, and 200 000 steps of 128 "
        "images. They also cut every entry of the gradient at 1, after the mean over pixels; this is left out.",
    ),
)
