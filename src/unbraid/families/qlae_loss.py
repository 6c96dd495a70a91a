"""QLAE: reconstruction, and two terms that draw values and latents towards each other."""

from torch import Tensor


def qlae(
    latents: Tensor,
    quantized: Tensor,
    reconstruction: Tensor,
    n_pixels: int,
    *,
    quantization_weight: Tensor | float,
    commitment_weight: Tensor | float,
) -> tuple[Tensor, dict[str, Tensor]]:
    """Reconstruction with the quantization and the commitment term.

    Args:
        latents: (n, n_latents), what the encoder says.
        quantized: (n, n_latents), the nearest values of the codebooks.
        reconstruction: (n,) negative log-likelihoods of the images, nats.
        n_pixels: numbers in an image. The weights are those of the authors' code, which takes the mean over pixels; a
            sum over pixels asks for as many times the weights.
        quantization_weight: of the squared distance of values from the latents, which here are constants.
        commitment_weight: of the squared distance of latents from their values, which here are constants.

    Returns:
        The loss, nats per image, and by name "reconstruction", "quantization" and "commitment" (means over latents and
        images, unweighted; the two are equal and differ in their gradients).

    Reference:
        Hsu et al. 2023, section 3; means over latents and pixels as in the authors' code.
    """
    fit = reconstruction.mean()
    quantization = (latents.detach() - quantized).square().mean()
    commitment = (latents - quantized.detach()).square().mean()
    loss = fit + n_pixels * (quantization_weight * quantization + commitment_weight * commitment)
    return loss, {"reconstruction": fit, "quantization": quantization, "commitment": commitment}
