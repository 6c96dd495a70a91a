"""A prior with one normalizing flow per latent."""

import math

import torch
from torch import Tensor, nn


class FactorialFlow(nn.Module):
    """A learned prior with independent dimensions, each a one-dimensional planar flow.

    x_0 = z and x_{k+1} = x_k + u_k tanh(w_k x_k + b_k) lead from a latent to a standard normal base, so densities are
    cheap. Each layer is increasing because u_k w_k is held above -1; sampling inverts by bisection.

    Args:
        n_latents: dimensions.
        depth: layers per dimension, 32 in the paper.

    Reference:
        Chen et al. 2018 (workshop version), section 5.4; Rezende and Mohamed 2015. Starts at N(0, 0.02^2) as in the
        authors' code, which does not hold u_k w_k above -1 and does not sample.
    """

    FLOOR = 1e-3  # of a layer's derivative: no density is ever multiplied by 0

    def __init__(self, n_latents: int, depth: int = 32) -> None:
        super().__init__()
        self.u, self.w, self.b = (nn.Parameter(0.02 * torch.randn(depth, n_latents)) for _ in range(3))

    def slopes(self) -> Tensor:
        """The u in use, (depth, n_latents): the parameter where u w >= 0, else shrunk so that u w > FLOOR - 1."""
        product = self.u * self.w
        room = 1 - self.FLOOR
        below = (product / room).clamp(max=-1e-6)  # away from 0 / 0; the ratio there is 1 to 1e-6
        return self.u * torch.where(product < 0, torch.expm1(below) / below, 1.0)

    def to_base(self, values: Tensor) -> tuple[Tensor, Tensor]:
        """Latents (n, n_latents) -> base values, and the logarithm of the derivative of each; same shape."""
        u = self.slopes()
        log_derivative = torch.zeros_like(values)
        for u_k, w_k, b_k in zip(u, self.w, self.b, strict=True):
            bent = torch.tanh(w_k * values + b_k)
            log_derivative = log_derivative + torch.log1p(u_k * w_k * (1 - bent.square()))
            values = values + u_k * bent
        return values, log_derivative

    def forward(self, values: Tensor) -> Tensor:
        """Log density of each latent, (n, n_latents)."""
        base, log_derivative = self.to_base(values)
        return log_derivative - 0.5 * (base.square() + math.log(2 * math.pi))

    @torch.no_grad()
    def from_base(self, base: Tensor) -> Tensor:
        """Latents whose base values these are: samples of the prior from standard normal noise; (n, n_latents)."""
        reach = self.slopes().abs().sum(0)  # tanh never moves a value further
        low, high = base - reach, base + reach
        for _ in range(60):  # halvings: to the last bit
            middle = (low + high) / 2
            above = self.to_base(middle)[0] > base
            low, high = torch.where(above, low, middle), torch.where(above, middle, high)
        return (low + high) / 2
