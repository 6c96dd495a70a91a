"""WeakDE: a prior of one Gaussian per class, and what leads from class to class."""

import math
from collections.abc import Sequence
from itertools import pairwise

import numpy as np
import torch
from torch import Tensor, nn

from unbraid.base.types import IntArray

RIDGE = 1e-4  # added to the variances of every class: some have fewer images than codes


def tanh_layers(n_inputs: int, n_outputs: int, width: int, depth: int) -> nn.Sequential:
    """Hidden layers with hyperbolic tangents, and a linear output."""
    layers: list[nn.Module] = []
    for before, after in pairwise([n_inputs, *[width] * depth]):
        layers += [nn.Linear(before, after), nn.Tanh()]
    return nn.Sequential(*layers, nn.Linear(width, n_outputs))


class ClassPrior(nn.Module):
    """A Gaussian per class, fitted once; nothing here is trained.

    Args:
        moves: (n_relations, n_classes) of `class_moves`.
        n_latents: of the codes.
    """

    means: Tensor  # (n_classes, n_latents)
    roots: Tensor  # (n_classes, n_latents, n_latents), lower triangles whose squares are the covariances
    known: Tensor  # (n_classes,), 1 where the class was fitted
    moves: Tensor  # (n_relations, n_classes)

    def __init__(self, moves: IntArray, n_latents: int) -> None:
        super().__init__()
        n_classes = moves.shape[1]
        self.register_buffer("means", torch.zeros(n_classes, n_latents))
        self.register_buffer("roots", torch.zeros(n_classes, n_latents, n_latents))
        self.register_buffer("known", torch.zeros(n_classes))
        self.register_buffer("moves", torch.tensor(moves))

    def fit(self, codes: Tensor, classes: Tensor, spread: float) -> None:
        """Each class that has images becomes N(mean, spread * covariance + ridge) of its codes.

        Codes too large for the ridge to be seen beside them give a class whose samples are NaN.

        Args:
            codes: (n, n_latents).
            classes: (n,) whole numbers.
            spread: what covariances are multiplied by, 0.1 in the authors' code.
        """
        codes = codes.double()
        ridge = RIDGE * torch.eye(codes.shape[1], dtype=codes.dtype, device=codes.device)
        self.known.zero_()
        for chosen in classes.unique().tolist():
            own = codes[classes == chosen]
            centred = own - own.mean(0)
            covariance = centred.T @ centred / max(1, len(own) - 1)
            self.means[chosen] = own.mean(0).to(self.means)
            root, failed = torch.linalg.cholesky_ex(spread * covariance + ridge)
            self.roots[chosen] = torch.where(failed > 0, math.nan, root).to(self.roots)
            self.known[chosen] = 1

    def choose(self, uniform: Tensor) -> Tensor:
        """Classes (...) from numbers (...) on (0, 1): every fitted one alike."""
        upto = self.known.cumsum(0) / self.known.sum().clamp(min=1)
        return (uniform[..., None] >= upto).sum(-1).clamp(max=len(upto) - 1)

    def sample(self, classes: Tensor, noise: Tensor) -> Tensor:
        """Codes (..., n_latents) of these classes (...), from standard normal noise."""
        # A sum and no matrix product, which autocast would take in half precision.
        return self.means[classes] + (self.roots[classes] * noise[..., None, :]).sum(-1)

    def moved(self, classes: Tensor) -> Tensor:
        """Where each relation leads classes (..., n_relations), one column per relation; nowhere, if unfitted."""
        relations = torch.arange(len(self.moves), device=classes.device)
        there = self.moves[relations, classes]
        return torch.where(self.known[there] > 0, there, classes)


def class_moves(sizes: Sequence[int], kinds: Sequence[str]) -> IntArray:
    """Class numbers after each relation: (n_relations, n_classes).

    Classes are the combinations of levels in C order. A categorical factor has one relation, the next of its levels
    and after the last the first; others have two, one level up and one down, which go around where the factor is
    cyclic and stay at the ends where it is not.

    Args:
        sizes: levels of each factor.
        kinds: of each factor.

    Example:
        >>> class_moves((3,), ("ordinal",)).tolist(), class_moves((3,), ("categorical",)).tolist()
        ([[1, 2, 2], [0, 0, 1]], [[1, 2, 0]])
    """
    levels = np.stack(np.unravel_index(np.arange(np.prod(sizes)), tuple(sizes)))
    moves = []
    for place, (size, kind) in enumerate(zip(sizes, kinds, strict=True)):
        for way in (1,) if kind == "categorical" else (1, -1):
            there = levels.copy()
            moved = there[place] + way
            there[place] = moved % size if kind in ("categorical", "cyclic") else moved.clip(0, size - 1)
            moves.append(np.ravel_multi_index(tuple(there), tuple(sizes)))
    return np.stack(moves)


def relation_inputs(codes: Tensor) -> Tensor:
    """Codes (n, n_relations, n_latents), each with its relation appended, one-hot over the n_relations."""
    which = torch.eye(codes.shape[1], dtype=codes.dtype, device=codes.device)
    return torch.cat([codes, which.expand(len(codes), -1, -1)], dim=-1)
