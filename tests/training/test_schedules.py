"""Learning rates that change, beta that rises, gradients that are cut: against plain loops of PyTorch's own parts."""

import math

import numpy as np
import pytest
import torch
from torch import nn

import unbraid
from tests.training.training_examples import TINY, member
from unbraid.families.building import Member, build_member, recorded, structural_settings
from unbraid.families.family import Plateau, completed
from unbraid.families.family_table import FAMILIES
from unbraid.families.likelihoods import bernoulli_nll
from unbraid.families.parted_vae import PARTED_VAE
from unbraid.families.vae import beta_vae
from unbraid.training.population import Population, make_context, make_population
from unbraid.training.schedules import beta_factor, check_schedules, clipped, new_plateau, plateau_step, rate_factor

STEPS = 9
FAMILY = FAMILIES["beta_vae"]
SETTINGS = [
    {"schedule": "cosine", "rate_warmup": 3, "clip": 4.0},
    {"schedule": "cosine", "beta_warmup": 5},
    {"schedule": "cosine", "rate_warmup": 1, "clip": 1.0, "beta_warmup": 2},
]


def member_with(seed: int, settings: dict[str, float | int | str]) -> Member:
    return member("beta_vae", seed, **{"network": "dense", "latents": 3, "learning_rate": 1e-2, **settings})


def population(members: list[Member]) -> Population:
    context = make_context(FAMILY, members, TINY, batch_size=8, steps=STEPS)
    return make_population(FAMILY, members, TINY, context, device=torch.device("cpu"), precision=torch.float64)


def plain_weights(one: Member) -> tuple[dict[str, torch.Tensor], list[float]]:
    """By PyTorch's Adam, clipping and schedulers, on what a population of this member draws; and the norms met."""
    hyper = one.hyper
    draws = population([one]).draws  # pyright: ignore[reportAttributeAccessIssue]
    modules = build_member(FAMILY, TINY.image_shape, structural_settings(FAMILY, [one]), one.seed).double()
    adam = torch.optim.Adam(modules.parameters(), lr=float(hyper["learning_rate"]))
    warmup = int(hyper["rate_warmup"])
    after = {
        "cosine": lambda: torch.optim.lr_scheduler.CosineAnnealingLR(adam, STEPS - warmup),
        "linear": lambda: torch.optim.lr_scheduler.LinearLR(adam, 1.0, 1e-300, STEPS - warmup),
        "constant": lambda: torch.optim.lr_scheduler.ConstantLR(adam, 1.0),
    }[str(hyper["schedule"])]()
    parts: list[torch.optim.lr_scheduler.LRScheduler] = [after]
    if warmup:
        rising = torch.optim.lr_scheduler.LambdaLR(adam, lambda step: (step + 1) / warmup)
        parts = [rising, after]
    schedule = torch.optim.lr_scheduler.SequentialLR(adam, parts, [warmup] * (len(parts) - 1))
    norms = []
    for step in range(STEPS):
        batch = draws.batch(FAMILY.optimizer_steps[0], step, step, 0)
        images = batch["images"][0]
        outputs = modules["vae"](images, batch["noise"][0])
        beta = float(hyper["beta"]) * (min(1, step / int(hyper["beta_warmup"])) if hyper["beta_warmup"] else 1)
        loss, _ = beta_vae(outputs, bernoulli_nll(outputs.decoded, images), beta=beta)
        adam.zero_grad()
        loss.backward()
        most = float(hyper["clip"]) or math.inf
        norms.append(float(nn.utils.clip_grad_norm_(modules.parameters(), most)))
        adam.step()
        schedule.step()
    return {f"model/{name}": value for name, value in modules.state_dict().items()}, norms


@pytest.mark.filterwarnings("ignore:.*lr_scheduler.step")
@pytest.mark.parametrize("schedule", ["cosine", "linear", "constant"])
def test_stacked_and_alone_follow_the_schedules_of_a_plain_loop(schedule: str) -> None:
    members = [member_with(seed, {**settings, "schedule": schedule}) for seed, settings in enumerate(SETTINGS)]
    stacked, alone = population(members), [population([each]) for each in members]
    for step in range(STEPS):
        stacked.advance(step)
        for each in alone:
            each.advance(step)
    for index, each in enumerate(members):
        plain, norms = plain_weights(each)
        assert not each.hyper["clip"] or max(norms) > float(each.hyper["clip"])  # it did cut
        for found in (stacked.state(index), alone[index].state(0)):
            for name, value in plain.items():
                # PyTorch adds 1e-6 to the norm that it divides by.
                torch.testing.assert_close(found[name], value, rtol=1e-5, atol=1e-7)


def test_rates_rise_to_their_value_and_fall_to_nought() -> None:
    assert [rate_factor(step, 10, "linear", 4) for step in range(4)] == [0.25, 0.5, 0.75, 1.0]
    assert [rate_factor(step, 4, "linear", 0) for step in range(4)] == [1.0, 0.75, 0.5, 0.25]
    assert rate_factor(7, 10, "cosine", 4) == pytest.approx(0.5)
    assert {rate_factor(step, 10, "constant", 4) for step in range(4, 10)} == {1.0}


def test_only_norms_above_the_largest_are_cut() -> None:
    gradients = [torch.tensor([[3.0, 0], [3, 0], [3, 0]]), torch.tensor([4.0, 4, 4])]
    cut = clipped(gradients, torch.tensor([1.0, 0, 10]))
    assert cut[0].tolist() == [[pytest.approx(0.6), 0], [3, 0], [3, 0]]
    assert cut[1].tolist() == [pytest.approx(0.8), 4, 4]
    assert [each.tolist() for each in clipped([torch.tensor([3.0]), torch.tensor([4.0])], 2.5)] == [[1.5], [2.0]]


@pytest.mark.parametrize(
    ("settings", "said"),
    [
        (
            {"rate_warmup": 21},
            "rate_warmup must be at most 20 in a training of 20 steps, or learning rates would",
        ),
        (
            {"beta_warmup": 20},
            "beta_warmup must be at most 19 in a training of 20 steps, or beta would never be",
        ),
        ({"schedule": "cosin"}, "schedule must be constant, .* there is no cosin; did you mean 'cosine'"),
        ({"clip": -1.0}, "clip must lie between 0"),
        ({"initialisation": "he"}, "initialisation must be one of pytorch, glorot; got 'he'"),
    ],
)
def test_what_cannot_be_followed_is_refused_before_anything_is_read(tmp_path, settings, said) -> None:
    with pytest.raises(ValueError, match=said):
        unbraid.train("beta_vae", str(tmp_path / "nowhere"), steps=20, out=tmp_path / "runs", **settings)
    assert not (tmp_path / "runs").exists()


def test_warm_ups_may_end_with_the_last_step() -> None:
    check_schedules({"rate_warmup": 4, "beta_warmup": 3}, 4)
    assert [rate_factor(step, 4, "cosine", 4) for step in range(4)] == [0.25, 0.5, 0.75, 1.0]
    assert beta_factor(3, 3) == 1.0


def test_a_family_without_beta_has_no_warm_up_of_it() -> None:
    assert "beta_warmup" not in FAMILIES["vae"].hyperparameters
    assert {name for name, row in FAMILIES.items() if "clip" not in row.hyperparameters} == {"pca"}


def test_settings_that_came_later_are_in_a_config_only_where_they_are_chosen() -> None:
    """So that the runs there were keep their ids."""
    chosen = member_with(0, {"clip": 2.0})
    kept = recorded(FAMILY, chosen.hyper)
    assert kept.keys() == {"latents", "network", "likelihood", "sigma", "learning_rate", "beta", "clip"}
    assert completed(FAMILY, kept) == chosen.hyper


def test_glorots_layers_are_uniform_in_its_bounds_with_zero_biases() -> None:
    one = member("factor_vae", initialisation="glorot", discriminator_width=50, discriminator_depth=2)
    family = FAMILIES["factor_vae"]
    modules = build_member(family, (32, 32, 1), structural_settings(family, [one]), 0)
    weights = dict(modules.named_parameters())
    seen = 0
    for name, value in weights.items():
        if name.endswith("bias"):
            assert not value.any()
            continue
        receptive = math.prod(value.shape[2:])
        bound = math.sqrt(6 / (receptive * (value.shape[0] + value.shape[1])))
        assert float(value.detach().abs().max()) <= bound * (1 + 1e-6)  # single precision
        # The standard deviation of a uniform draw, within 6 of its own standard errors.
        assert float(value.detach().std()) == pytest.approx(bound / math.sqrt(3), rel=6 / math.sqrt(4 * value.numel()))
        seen += 1
    assert seen == 3 + 2 + 2 + 3 + 3


def test_glorot_leaves_learned_priors_and_the_other_seeds_alone() -> None:
    def built(initialisation: str, seed: int = 0) -> dict[str, torch.Tensor]:
        one = member("beta_tcvae", seed, initialisation=initialisation, prior="factorial_flow", network="dense")
        family = FAMILIES["beta_tcvae"]
        return build_member(family, TINY.image_shape, structural_settings(family, [one]), seed).state_dict()

    glorot, plain, other = built("glorot"), built("pytorch"), built("glorot", 1)
    assert torch.equal(glorot["prior.u"], plain["prior.u"])
    assert not np.array_equal(glorot["vae.encoder.1.weight"], plain["vae.encoder.1.weight"])
    assert not torch.equal(glorot["vae.encoder.1.weight"], other["vae.encoder.1.weight"])


@pytest.mark.parametrize(
    "plateau", [Plateau(), Plateau(0.1, 1, 2, 1e-6), Plateau(0.01, 2, 3, 1e-4), Plateau(cooldown=0)]
)
def test_plateaus_are_those_of_pytorch(plateau: Plateau) -> None:
    """Two members at once against its scheduler, over epochs of three losses that fall, rise and stay; also below 0."""
    rng = np.random.default_rng(0)
    losses = np.stack([np.exp(-np.arange(180) / 40) + rng.normal(0, 0.1, 180), rng.normal(-3, 1, 180)])
    rates = [5e-4, 3e-3]
    optimisers = [torch.optim.SGD([nn.Parameter(torch.zeros(1))], lr=rate) for rate in rates]
    given = {"factor": 0.5, "patience": plateau.patience, "threshold": plateau.threshold, "threshold_mode": "rel"}
    expected = [
        torch.optim.lr_scheduler.ReduceLROnPlateau(each, cooldown=plateau.cooldown, eps=plateau.epsilon, **given)
        for each in optimisers
    ]
    state, alone = new_plateau(2), new_plateau()
    for number in range(180):
        ends = number % 3 == 2
        batch = torch.tensor(losses[:, number])
        state = plateau_step(state, batch, torch.tensor(rates), plateau, ends=ends)
        alone = plateau_step(alone, batch[0], rates[0], plateau, ends=ends)
        for index, scheduler in enumerate(expected):
            if ends:
                scheduler.step(float(losses[index, number - 2 : number + 1].mean()))
            rate = optimisers[index].param_groups[0]["lr"]
            assert float(state[index, 0]) * rates[index] == pytest.approx(rate, rel=1e-12)
        assert torch.equal(alone, state[0])
    assert (state[:, 0] < 1).all()


def test_a_rate_is_halved_where_the_loss_falls_no_more() -> None:
    """PartedVAE's two optimizer steps by their own plateaus; stopped and resumed as if nothing had happened."""
    row, one = FAMILIES["parted_vae"], member("parted_vae", network="dense", schedule="plateau", learning_rate=0.0)
    context = make_context(row, [one, one], TINY, batch_size=243, steps=12)
    assert context.image_pass == 1
    moving = [member("parted_vae", seed, network="dense", schedule="plateau", learning_rate=rate)
              for seed, rate in ((0, 1e-3), (1, 2e-3))]  # fmt: skip
    for members in ([one], moving):
        made = make_population(row, members, TINY, context, device=torch.device("cpu"))
        for step in range(12):
            made.advance(step)
        state = made.state(0)
        assert {"plateau/labels", "plateau/vae"} <= state.keys()
        again = make_population(row, members, TINY, context, device=torch.device("cpu"))
        for index in range(len(members)):
            again.load_state(index, state if index == 0 else made.state(index))
        made.advance(12)
        again.advance(12)
        assert all(value.equal(again.state(0)[name]) for name, value in made.state(0).items())
    alone = make_population(row, moving[1:], TINY, context, device=torch.device("cpu"))
    for step in range(13):
        alone.advance(step)
    for name in ("plateau/labels", "plateau/vae"):
        np.testing.assert_allclose(made.state(1)[name], alone.state(0)[name], rtol=1e-3)
    assert PARTED_VAE.optimizer_steps[0].plateau == Plateau(0.1, 1, 2, 1e-6)
    assert PARTED_VAE.optimizer_steps[1].plateau == Plateau(0.01, 1, 4, 1e-7)


def test_without_progress_the_rate_falls_by_halves() -> None:
    """With patience 1 and cooldown 4: at the third epoch that is no better, then every sixth."""
    state, factors = new_plateau(), []
    for _ in range(15):
        state = plateau_step(state, torch.tensor(1.0), 1e-3, Plateau(), ends=True)
        factors.append(float(state[0]))
    assert factors == [1, 1, 0.5, 0.5, 0.5, 0.5, 0.5, 0.5, 0.25, 0.25, 0.25, 0.25, 0.25, 0.25, 0.125]
