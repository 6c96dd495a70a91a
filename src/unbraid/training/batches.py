"""Random draws that are pure functions of a member's seed, the step and the name of the draw.

Nothing here keeps state, so a training that resumes needs none, and what a member draws does not depend on the other
members of its population. Whole numbers come from the SplitMix64 generator (Steele et al. 2014), read at any
position; they are equal on every device, while logarithms and cosines may differ in the last digit.
"""

import math
from collections.abc import Sequence

import torch
from torch import Tensor

from unbraid.base.seeds import stream

_GAMMA = 0x9E3779B97F4A7C15 - (1 << 64)
_MIX1 = 0xBF58476D1CE4E5B9 - (1 << 64)
_MIX2 = 0x94D049BB133111EB - (1 << 64)
_ROUNDS = 6  # of the Feistel network


def streams(seeds: Sequence[int], purpose: str, device: torch.device | str = "cpu") -> Tensor:
    """`stream` of every member: (n_members,) int64."""
    return torch.tensor([stream(seed, purpose) for seed in seeds], dtype=torch.int64, device=device)


def random_bits(keys: Tensor, positions: Tensor) -> Tensor:
    """The 64 bits of each stream at these positions; keys and positions broadcast. int64."""
    return _mix(keys + positions * _GAMMA)


def uniform(keys: Tensor, step: int | Tensor, shape: Sequence[int]) -> Tensor:
    """(n_members, *shape) on (0, 1), single precision; the step of all members, or (n_members,) that of each."""
    return _uniform(keys, step, shape).float().clamp(max=1 - 2**-24)


def normal(keys: Tensor, step: int | Tensor, shape: Sequence[int]) -> Tensor:
    """(n_members, *shape) standard normal, single precision; Box and Muller's way."""
    count = math.prod(shape)
    half = -(-count // 2)
    unit = _uniform(keys, step, (2, half))
    radius = (-2 * unit[:, 0].log()).sqrt()
    angle = unit[:, 1] * (2 * math.pi)
    both = torch.cat([radius * angle.cos(), radius * angle.sin()], dim=1)
    return both[:, :count].float().reshape(len(keys), *shape)


def permutations(keys: Tensor, step: int | Tensor, shape: Sequence[int]) -> Tensor:
    """(n_members, *shape) int64; along the first axis of `shape` every column is a shuffle of its own."""
    return _uniform(keys, step, shape).argsort(dim=1)


def epoch_positions(keys: Tensor, start: int, count: int, n_images: int) -> Tensor:
    """Which images a member sees as number `start` .. `start + count - 1` of its training: (n_members, count) int64.

    A member sees every image once before it sees any twice; each epoch has another order, and a batch that crosses
    the end of one goes on with the next. The order is a Feistel network on the smallest number of bits that holds
    `n_images`, walked until it lands inside, so no list of all images is ever made.
    """
    place = start + torch.arange(count, dtype=torch.int64, device=keys.device)
    epoch_keys = random_bits(keys[:, None], place // n_images + 1)
    positions = (place % n_images).expand_as(epoch_keys)
    bits = max(2, (n_images - 1).bit_length())
    positions = _feistel(epoch_keys, positions, bits)
    while bool((outside := positions >= n_images).any()):
        positions[outside] = _feistel(epoch_keys[outside], positions[outside], bits)
    return positions


def _uniform(keys: Tensor, step: int | Tensor, shape: Sequence[int]) -> Tensor:
    # Each step has its own key instead of a section of one stream, so that steps may draw different numbers of values.
    at_step = random_bits(keys, torch.as_tensor(step, device=keys.device) + 1)
    positions = torch.arange(1, math.prod(shape) + 1, dtype=torch.int64, device=keys.device)
    bits = random_bits(at_step[:, None], positions)
    return ((_shifted(bits, 11).double() + 0.5) * 2**-53).reshape(len(keys), *shape)


def _feistel(keys: Tensor, values: Tensor, bits: int) -> Tensor:
    low = bits // 2
    high = bits - low
    left, right = values >> low, values & ((1 << low) - 1)  # `high` and `low` bits wide
    for turn in range(_ROUNDS):
        if turn % 2 == 0:
            left = left ^ (_mix(keys + (right * _ROUNDS + turn + 1) * _GAMMA) & ((1 << high) - 1))
        else:
            right = right ^ (_mix(keys + (left * _ROUNDS + turn + 1) * _GAMMA) & ((1 << low) - 1))
    return (left << low) | right


def _mix(values: Tensor) -> Tensor:
    values = (values ^ _shifted(values, 30)) * _MIX1
    values = (values ^ _shifted(values, 27)) * _MIX2
    return values ^ _shifted(values, 31)


def _shifted(values: Tensor, count: int) -> Tensor:
    """Shifted right with zeros coming in; torch's own shift repeats the sign."""
    return (values >> count) & ((1 << (64 - count)) - 1)
