"""What the rows of FAMILIES say of themselves, and the variants that their defaults leave out."""

import numpy as np
import pytest
import torch
from torch import nn

from tests.training.training_examples import blocks, member
from unbraid.data.image_dataset import ArrayDataset
from unbraid.families import Context
from unbraid.families.building import build_member, recorded, structural_settings, weights_of
from unbraid.families.family_table import FAMILIES
from unbraid.files.trust import Trusted
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
    for step in range(3):
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


def test_the_weight_of_a_term_may_be_0() -> None:
    weights = [
        (name, row.low)
        for family in FAMILIES.values()
        for name, row in family.hyperparameters.items()
        if "weight" in name
    ]
    assert ("bias_weight", 0.0) in weights
    assert {low for _, low in weights} == {0.0}


def test_swept_hyperparameters_are_those_of_which_a_grid_has_several_values() -> None:
    grids = FAMILIES["beta_vae"].presets.values()
    several = {name for grid in grids for name in grid[0] if len({each.get(name) for each in grid}) > 1}
    assert FAMILIES["beta_vae"].swept == several == {"beta"}


def looking_pair(shape: tuple[int, ...], n_outputs: int, n_latents: int) -> tuple[nn.Module, nn.Module]:
    """Looks at a weight while it is built, which has to have a value for that."""
    encoder, decoder = small_pair(shape, n_outputs, n_latents)
    assert next(encoder.parameters()).sum().item() != 0
    return encoder, decoder


def test_weights_of_networks_that_look_at_them_are_those_of_the_member() -> None:
    row = FAMILIES["vae"]
    settings = {name: each.default for name, each in row.hyperparameters.items()}
    settings["network"] = Trusted(f"{__name__}:looking_pair")
    found, built = (make(row, (8, 8, 1), settings, 3) for make in (weights_of, build_member))
    torch.testing.assert_close(found, dict(built.state_dict()), rtol=0, atol=0)


@pytest.mark.parametrize("name", FAMILIES)
def test_training_that_can_be_chosen_since_is_recorded_where_it_was_chosen(name: str) -> None:
    """Else runs of before would have other ids."""
    row = FAMILIES[name]
    defaults = {each: hyperparameter.default for each, hyperparameter in row.hyperparameters.items()}
    since = {"initialisation", "optimizer", "schedule", "augment", "rate_warmup", "clip"}
    since |= {"beta_warmup", "reconstruction_weight"}
    assert recorded(row, defaults).keys() == defaults.keys() - since
    chosen = dict.fromkeys(since & defaults.keys(), 5)
    assert recorded(row, defaults | chosen).keys() == defaults.keys()


def test_what_strays_when_stacked_is_the_flow_and_half_precision() -> None:
    strays = FAMILIES["beta_tcvae"].diverges_when_stacked
    assert strays is not None
    cases = [(precision, prior) for precision in ("float32", "bfloat16") for prior in ("normal", "factorial_flow")]
    assert [strays(precision, {"prior": prior}) for precision, prior in cases] == [False, True, True, True]
