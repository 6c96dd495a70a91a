"""Sparse autoencoders: dictionaries of directions, and which of them make up an activation (TopK, BatchTopK, JumpReLU).

A dictionary has `encode`, `decode` and `W_dec`, as those of SAELens have.
"""

import math
from typing import Any, Literal, get_args

import numpy as np
import torch
from torch import Tensor, nn

from unbraid.base.arguments import check_choice, check_number, check_whole
from unbraid.base.arrays import as_array
from unbraid.base.types import ArrayLike, Progress

__all__ = ["Dictionary", "train_dictionary"]

Sparsity = Literal["topk", "batch_topk", "jump_relu"]
DEAD_AFTER = 200  # steps in which a latent has not fired
AUXILIARY = 1 / 32  # weight of the loss by which dead latents learn what is left (Gao et al. 2024, appendix A.2)
BANDWIDTH = 0.2  # of the kernel that stands for the derivative of a step, where activations have length 1 on average
FIRST_THRESHOLD = 0.2
FORGOTTEN = 0.01  # of the running mean of BatchTopK's thresholds, by every batch


class Dictionary(nn.Module):
    """Codes z of an activation x, and x again from them: x' = z W_dec + b_dec.

    Before sparsity the codes are relu((x - b_dec) W_enc + b_enc). "topk" keeps the k largest of each row, "batch_topk"
    k times as many as there are rows, of all, and after training what is above a threshold; "jump_relu" keeps what is
    above a threshold that each latent learns.

    Attributes:
        W_enc: (n_dimensions, n_latents).
        W_dec: (n_latents, n_dimensions) rows of length 1.
        b_enc, b_dec: (n_latents,) and (n_dimensions,).
    """

    threshold: Tensor
    log_threshold: Tensor

    def __init__(self, n_dimensions: int, n_latents: int, sparsity: Sparsity = "topk", k: int = 8) -> None:
        super().__init__()
        self.sparsity, self.k = sparsity, k
        rows = torch.randn(n_latents, n_dimensions)
        rows /= rows.norm(dim=1, keepdim=True)
        self.W_dec = nn.Parameter(rows)
        self.W_enc = nn.Parameter(rows.T.clone())
        self.b_enc = nn.Parameter(torch.zeros(n_latents))
        self.b_dec = nn.Parameter(torch.zeros(n_dimensions))
        if sparsity == "jump_relu":
            self.log_threshold = nn.Parameter(torch.full((n_latents,), math.log(FIRST_THRESHOLD)))
        else:
            self.register_buffer("threshold", torch.zeros(()))

    def encode(self, x: Tensor) -> Tensor:
        """(n_rows, n_latents) codes of (n_rows, n_dimensions) activations; at least 0."""
        return self.sparse(self.before(x))

    def decode(self, z: Tensor) -> Tensor:
        """(n_rows, n_dimensions)"""
        return z @ self.W_dec + self.b_dec

    def forward(self, x: Tensor) -> Tensor:
        """(n_rows, n_dimensions) activations rebuilt."""
        return self.decode(self.encode(x))

    def before(self, x: Tensor) -> Tensor:
        """Codes that are not sparse yet."""
        return torch.relu((x - self.b_dec) @ self.W_enc + self.b_enc)

    def sparse(self, codes: Tensor) -> Tensor:
        if self.sparsity == "jump_relu":
            return codes * _Step.apply(codes, self.log_threshold.exp())
        if self.sparsity == "topk":
            return _largest(codes, self.k)
        if not self.training:
            return codes * (codes > self.threshold)
        largest = _largest(codes.reshape(1, -1), self.k * len(codes)).reshape(codes.shape)
        if (largest > 0).any():
            with torch.no_grad():
                least = largest[largest > 0].min()
                self.threshold += (least - self.threshold) * (FORGOTTEN if self.threshold > 0 else 1.0)
        return largest


def _largest(codes: Tensor, k: int) -> Tensor:
    values, places = codes.topk(min(k, codes.shape[1]), dim=1)
    return torch.zeros_like(codes).scatter(1, places, values)


class _Step(torch.autograd.Function):
    """1 above the threshold; its derivative by the threshold is that of a step smoothed by a rectangle.

    Rajamanoharan et al. 2024, "Jumping Ahead", equations 11 and 12.
    """

    @staticmethod
    def forward(ctx: Any, codes: Tensor, threshold: Tensor) -> Tensor:
        ctx.save_for_backward(codes, threshold)
        return (codes > threshold).to(codes.dtype)

    @staticmethod
    def backward(ctx: Any, *gradients: Tensor) -> tuple[None, Tensor]:
        codes, threshold = ctx.saved_tensors
        near = ((codes - threshold).abs() < BANDWIDTH / 2).to(codes.dtype)
        return None, -(near / BANDWIDTH * gradients[0]).sum(dim=0)


def train_dictionary(
    activations: ArrayLike,
    n_latents: int,
    *,
    sparsity: Sparsity = "topk",
    k: int = 8,
    steps: int = 2000,
    batch_size: int = 1024,
    learning_rate: float = 1e-3,
    penalty: float = 0.05,
    seed: int = 0,
    device: str = "cpu",
    progress: Progress | None = None,
) -> Dictionary:
    """Train a sparse autoencoder on activations.

    Args:
        activations: (n_rows, n_dimensions) real. They are centred and scaled to a length of 1 on average to train on;
            the dictionary is for activations as they are given.
        n_latents: of the dictionary.
        sparsity: "topk" (Gao et al. 2024), "batch_topk" (Bussmann et al. 2024) or "jump_relu" (Rajamanoharan et al.
            2024).
        k: latents that fire for a row, for the first two; the mean over rows for "batch_topk".
        steps: of Adam.
        batch_size: rows of a step.
        learning_rate: of Adam, which falls to 0 in a straight line over the last fifth of the steps.
        penalty: of "jump_relu" for each latent that fires, beside the squared error; the more, the sparser.
        seed: of the first weights and of the rows.
        device: of PyTorch.
        progress: called as progress("training", steps done, steps).

    Returns:
        Dictionary, ready to encode. The loss of "topk" and "batch_topk" is the squared error, and a thirty-second of
        that of what is left, rebuilt by latents that have not fired for 200 steps.

    Raises:
        ValueError: an argument out of range, or activations that are constant or not finite.

    Example:
        >>> from unbraid.datasets.superposition import superposition
        >>> drawn = superposition(16, 8, 2000)
        >>> train_dictionary(drawn.activations, 16, k=2, steps=20).W_dec.shape
        torch.Size([16, 8])
    """
    check_choice("sparsity", sparsity, get_args(Sparsity))
    check_whole("n_latents", n_latents, 1)
    if sparsity != "jump_relu":  # which has no use for it
        check_whole("k", k, 1, n_latents, why="n_latents")
    check_whole("steps", steps, 1)
    check_whole("batch_size", batch_size, 1)
    check_number("learning_rate", learning_rate, above=0.0)
    check_number("penalty", penalty, least=0.0)
    check_whole("seed", seed, 0)
    inputs = np.asarray(as_array(activations), dtype=np.float32)
    if inputs.ndim != 2 or not inputs.size or not np.isfinite(inputs).all():
        raise ValueError(f"activations must be (n_rows, n_dimensions) finite numbers; got shape {inputs.shape}")
    mean = inputs.mean(axis=0)
    scale = float(np.linalg.norm(inputs - mean, axis=1).mean())
    if not scale > 0:
        raise ValueError("activations are constant: there is nothing to encode")
    rows = torch.from_numpy((inputs - mean) / scale).to(device)
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        model = Dictionary(rows.shape[1], n_latents, sparsity, k).to(device)
    draws = torch.Generator().manual_seed(seed)
    optimiser = torch.optim.Adam(model.parameters(), lr=learning_rate)
    falling = torch.optim.lr_scheduler.LambdaLR(optimiser, lambda step: min(1.0, 5 * (1 - step / steps)))
    silent = torch.zeros(n_latents, device=device)
    for step in range(steps):
        batch = rows[torch.randint(len(rows), (batch_size,), generator=draws).to(device)]
        loss, fired = _loss(model, batch, silent >= DEAD_AFTER, penalty)
        optimiser.zero_grad()
        loss.backward()
        optimiser.step()
        falling.step()
        with torch.no_grad():
            model.W_dec.div_(model.W_dec.norm(dim=1, keepdim=True).clamp_min(1e-12))
            silent = torch.where(fired, 0.0, silent + 1)
        if progress is not None:
            progress("training", step + 1, steps)
    return _unscaled(model.eval(), torch.from_numpy(mean).to(device), scale)


def _loss(model: Dictionary, batch: Tensor, dead: Tensor, penalty: float) -> tuple[Tensor, Tensor]:
    """And which latents fired."""
    before = model.before(batch)
    codes = model.sparse(before)
    left = batch - model.decode(codes)
    loss = left.square().sum(dim=1).mean()
    if model.sparsity == "jump_relu":
        loss = loss + penalty * _Step.apply(before, model.log_threshold.exp()).sum(dim=1).mean()
    elif dead.any():
        rebuilt = _largest(before * dead, max(model.k, batch.shape[1] // 2)) @ model.W_dec
        loss = loss + AUXILIARY * (left.detach() - rebuilt).square().sum(dim=1).mean()
    return loss, (codes > 0).any(dim=0)


@torch.no_grad()
def _unscaled(model: Dictionary, mean: Tensor, scale: float) -> Dictionary:
    """The same for activations as they were given: codes are longer by `scale`."""
    model.b_enc.mul_(scale)
    model.b_dec.mul_(scale).add_(mean)
    if model.sparsity == "jump_relu":
        model.log_threshold.add_(math.log(scale))
    else:
        model.threshold.mul_(scale)
    return model
