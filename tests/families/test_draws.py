"""What the optimizer steps of every family are given: random numbers of the right kind, independent of each other."""

from itertools import combinations

import numpy as np
import pytest
import torch
from torch import nn

from tests.families.members import FAMILIES, draws_of
from unbraid.base.types import FloatArray
from unbraid.families.family_table import find_family
from unbraid.families.weak_de import ClassPrior

NORMAL, UNIFORM, PERMUTED = "normal", "uniform", "permuted"
NOISE = {"noise": NORMAL}
KINDS = {  # of those that draw anything else than the noise of a posterior
    "factor_vae": {"noise": NORMAL, "second noise": NORMAL, "order": PERMUTED},
    "info_gan": {
        "critic normal codes": NORMAL, "critic uniform codes": UNIFORM, "mix": UNIFORM,
        "generator normal codes": NORMAL, "generator uniform codes": UNIFORM,
    },
    "qlae": {},
    "qvae": {"noise": UNIFORM},
    "delta_vae": {"walk": NORMAL, "noise": NORMAL},
    "lsbd_vae": {"group walk": NORMAL, "group noise": NORMAL, "walk": NORMAL, "noise": NORMAL},
    "quessard": {},
    "parted_vae": {"noise": NORMAL, "class noise": UNIFORM},
    "weak_de": {
        "from": UNIFORM, "from noise": NORMAL, "to noise": NORMAL,
        "prior cube": UNIFORM, "prior class": UNIFORM, "prior noise": NORMAL,
    },
    "mtd": {"noise": NORMAL, "swap factor": UNIFORM, "swap value": UNIFORM},
}  # fmt: skip


SETTINGS = {
    "lsbd_vae": {"euclidean": 3}, "delta_vae": {"euclidean": 3}, "parted_vae": {"labels": 24},
    "weak_de": {"classes": "shape", "adversary_width": 4}, "qvae": {"values": 4},
}  # fmt: skip


def near(value: float, expected: float, spread: float, n: int) -> bool:
    """Within five standard errors."""
    return abs(value - expected) < 5 * spread / n**0.5


@pytest.mark.parametrize("family", [name for name in FAMILIES if FAMILIES[name].optimizer_steps])
def test_numbers_are_drawn_from_the_right_distributions_apart_and_anew(family: str) -> None:
    moves = draws_of(family, 8, batch_size=40, **SETTINGS.get(family, {}))
    assert {move.mover for move in moves} == {move.name for move in FAMILIES[family].optimizer_steps}
    drawn: dict[str, list[FloatArray]] = {}
    for move in moves:
        for name in move.batch.keys() & KINDS.get(family, NOISE).keys():
            drawn.setdefault(name, []).append(move.batch[name].numpy())
    assert drawn.keys() == KINDS.get(family, NOISE).keys()
    for name, kind in KINDS.get(family, NOISE).items():
        if kind == PERMUTED:
            assert all(sorted(column) == [*range(40)] for order in drawn[name] for column in order.T)
            assert len({tuple(column) for order in drawn[name] for column in order.T}) == sum(
                order.shape[1] for order in drawn[name]
            )
            continue
        values = np.concatenate([each.ravel() for each in drawn[name]])
        mean, variance, fourth = (0.0, 1.0, 3.0) if kind == NORMAL else (0.5, 1 / 12, 1 / 80)
        assert near(values.mean(), mean, variance**0.5, len(values))
        assert near(values.var(), variance, (fourth - variance**2) ** 0.5, len(values))
        assert len(np.unique(values)) > 0.999 * len(values)
        assert kind == NORMAL or 0 < values.min() < values.max() < 1
    flat = {name: drawn[name][0].ravel() for name, kind in KINDS.get(family, NOISE).items() if kind != PERMUTED}
    for one, other in combinations(flat, 2):
        n = min(len(flat[one]), len(flat[other]))
        assert abs(np.corrcoef(flat[one][:n], flat[other][:n])[0, 1]) < 5 / n**0.5


def test_a_uniform_prior_fills_the_cube_from_minus_one_to_one() -> None:
    uniform = torch.tensor([[0.0, 0.5], [1.0, 0.25]])
    unfitted = nn.ModuleDict({"prior": ClassPrior(np.zeros((1, 2), dtype=np.int64), 2)})
    for name, modules, settings in (
        ("info_gan", nn.ModuleDict(), {"code_prior": "uniform"}),
        ("weak_de", unfitted, {}),
    ):
        draw = find_family(name).draw_prior
        assert draw is not None
        drawn = draw(modules, settings, torch.zeros(2, 2), uniform)
        np.testing.assert_allclose(drawn, [[-1.0, 0.0], [1.0, -0.5]])
