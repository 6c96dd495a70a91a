"""What the rows of FAMILIES say of themselves, and the variants that their defaults leave out."""

import numpy as np
import pytest
import torch
from torch import nn

from tests.training.examples import blocks, member
from unbraid.datasets.base import ArrayDataset
from unbraid.families import Context
from unbraid.families.building import structural_settings
from unbraid.families.table import FAMILIES
from unbraid.storage.trust import Trusted
from unbraid.training.population import Population, make_population

CPU = torch.device("cpu")
DATASET = blocks()
TINY = ArrayDataset(np.ascontiguousarray(DATASET.array[:, ::4, ::4]), DATASET.space)  # 8 x 8
VARIANTS = [
    ("beta_tcvae", {"estimator": "stratified", "network": "dense"}),
    ("beta_tcvae", {"prior": "factorial_flow", "network": "dense"}),
    ("info_gan", {"network": Trusted(f"{__name__}:small_pair")}),
    ("info_gan", {"network": Trusted(f"{__name__}:small_pair"), "code_prior": "normal"}),
]


def small_pair(shape: tuple[int, ...], n_outputs: int, n_latents: int) -> tuple[nn.Module, nn.Module]:
    """An encoder that sees images one by one (layer norm), and a decoder with batch norm."""
    inner = (4, shape[0] // 8, shape[1] // 8)
    encoder = nn.Sequential(
        nn.Conv2d(shape[2], 4, 8, 8), nn.GroupNorm(1, 4), nn.ReLU(), nn.Flatten(),
        nn.Linear(int(np.prod(inner)), n_outputs),
    )  # fmt: skip
    decoder = nn.Sequential(
        nn.Linear(n_latents, int(np.prod(inner))), nn.Unflatten(1, inner),
        nn.BatchNorm2d(4), nn.ReLU(), nn.ConvTranspose2d(4, shape[2], 8, 8),
    )  # fmt: skip
    return encoder, decoder


def population(family: str, variant: dict[str, str], seeds: tuple[int, ...]) -> Population:
    members = [member(family, seed, learning_rate=1e-3 * (1 + seed), **variant) for seed in seeds]
    context = Context(structural_settings(FAMILIES[family], members), len(TINY), batch_size=8, steps=7)
    return make_population(FAMILIES[family], members, TINY, context, device=CPU, precision=torch.float64)


@pytest.mark.parametrize(("family", "variant"), VARIANTS)
def test_variants_train_and_come_out_the_same_alone_and_stacked(family: str, variant: dict[str, str]) -> None:
    stacked, alone = population(family, variant, (0, 1)), population(family, variant, (1,))
    before = alone.state(0)
    for step in range(7):
        together, single = stacked.advance(step), alone.advance(step)
        for name in single:
            torch.testing.assert_close(together[name][1:], single[name], rtol=1e-8, atol=1e-9)
    mine, theirs = stacked.state(1), alone.state(0)
    for name in theirs:
        torch.testing.assert_close(mine[name], theirs[name], rtol=1e-7, atol=1e-9)
    modules = {name.split("/")[1].split(".")[0] for name in theirs if name.startswith("model/")}
    for module in modules:  # every module has learned
        assert any(not torch.equal(before[name], theirs[name]) for name in theirs if f"model/{module}." in name)


@pytest.mark.parametrize("name", FAMILIES)
def test_presets_name_hyperparameters_and_stay_within_their_bounds(name: str) -> None:
    known = FAMILIES[name].hyperparameters
    for grid in FAMILIES[name].presets.values():
        assert len({tuple(sorted(settings.items())) for settings in grid}) == len(grid)
        for settings in grid:
            for key, value in settings.items():
                if known[key].kind == "choice":
                    assert value in known[key].choices
                elif known[key].kind == "text":
                    assert isinstance(value, str)
                else:
                    assert known[key].low <= float(value) <= known[key].high
