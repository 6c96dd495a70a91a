"""Optimizers and schedules of PyTorch by name: against a plain loop, stopped and resumed, and refused."""

import signal

import pytest
import torch

import unbraid
from tests.training.test_loop import assert_same, interrupted_at
from tests.training.training_examples import TINY, member
from unbraid.families.building import build_member, structural_settings
from unbraid.families.family import uses_torch
from unbraid.families.family_table import FAMILIES
from unbraid.families.likelihoods import bernoulli_nll
from unbraid.families.torch_classes import torch_classes
from unbraid.families.vae import beta_vae
from unbraid.training import loop
from unbraid.training.loop import Plan, train_here
from unbraid.training.population import make_context, make_population

STEPS = 12
NEEDED = {  # options without which torch makes none
    "StepLR": "step_size=5", "MultiStepLR": "milestones=[4, 9]", "ExponentialLR": "gamma=0.9",
    "CosineAnnealingLR": "T_max=12", "CyclicLR": "base_lr=1e-4, max_lr=1e-2, step_size_up=3, cycle_momentum=False",
    "CosineAnnealingWarmRestarts": "T_0=5", "OneCycleLR": f"max_lr=0.01, total_steps={STEPS}",
    "ReduceLROnPlateau": "patience=0, threshold=0.5",
}  # fmt: skip
IMPOSSIBLE = {"LBFGS", "Muon", "SparseAdam", "LambdaLR", "MultiplicativeLR", "SequentialLR", "ChainedScheduler"}
OPTIMIZERS = sorted(torch_classes("torch.optim").keys() - IMPOSSIBLE)
SCHEDULES = sorted(torch_classes("torch.optim.lr_scheduler").keys() - IMPOSSIBLE)
PLAN = Plan("beta_vae", STEPS, 8, "cpu", "float32")


def member_with(**settings: str | float):
    return member("beta_vae", 1, network="dense", latents=3, learning_rate=1e-2, beta=4.0, **settings)


def batches(chosen):
    """What the training of a member draws, step by step: images and noise."""
    family = FAMILIES["beta_vae"]
    context = make_context(family, [chosen], TINY, batch_size=8, steps=STEPS)
    draws = make_population(family, [chosen], TINY, context, device=torch.device("cpu"), stacked=False).draws
    for step in range(STEPS):
        batch = draws.batch(family.optimizer_steps[0], step, step, 0)
        yield batch["images"][0], batch["noise"][0]


@pytest.mark.parametrize(
    ("optimizer", "schedule", "optimizer_of", "schedule_of"),
    [
        (
            "AdamW(weight_decay=0.1)", "CosineAnnealingLR(T_max=9)",
            lambda weights: torch.optim.AdamW(weights, lr=1e-2, weight_decay=0.1),
            lambda made: torch.optim.lr_scheduler.CosineAnnealingLR(made, T_max=9),
        ),
        (
            "SGD(nesterov=True,momentum=0.9)", "OneCycleLR(max_lr=0.01, total_steps=12)",
            lambda weights: torch.optim.SGD(weights, lr=1e-2, momentum=0.9, nesterov=True),
            lambda made: torch.optim.lr_scheduler.OneCycleLR(made, max_lr=0.01, total_steps=12),
        ),
        (
            "RMSprop", "constant", lambda weights: torch.optim.RMSprop(weights, lr=1e-2),
            lambda made: torch.optim.lr_scheduler.ConstantLR(made, 1.0),
        ),
        (
            "family", "MultiStepLR(milestones=[3, 7])", lambda weights: torch.optim.Adam(weights, lr=1e-2),
            lambda made: torch.optim.lr_scheduler.MultiStepLR(made, [3, 7]),
        ),
    ],
    ids=["AdamW", "SGD", "RMSprop", "family"],
)  # fmt: skip
def test_the_weights_are_those_of_a_plain_loop(tmp_path, optimizer, schedule, optimizer_of, schedule_of) -> None:
    chosen = member_with()
    family = FAMILIES["beta_vae"]
    modules = build_member(family, TINY.image_shape, structural_settings(family, [chosen]), chosen.seed)
    made = optimizer_of(modules.parameters())
    scheduler = schedule_of(made)
    for images, noise in batches(chosen):
        outputs = modules["vae"](images, noise)
        loss, _ = beta_vae(outputs, bernoulli_nll(outputs.decoded, images), beta=4.0)
        made.zero_grad()
        loss.backward()
        made.step()
        scheduler.step()
    (run,) = unbraid.train(
        "beta_vae", TINY, seeds=[1], steps=STEPS, batch_size=8, device="cpu", precision="float32", out=tmp_path,
        network="dense", latents=3, learning_rate=1e-2, beta=4.0, optimizer=optimizer, schedule=schedule, processes=0,
    )  # fmt: skip
    trained = run.modules.state_dict()
    for name, value in modules.state_dict().items():
        torch.testing.assert_close(trained[name], value, rtol=1e-5, atol=1e-7)


@pytest.mark.parametrize("settings", [*({"optimizer": name} for name in OPTIMIZERS),
                                      *({"schedule": name} for name in SCHEDULES)],
                         ids=[*OPTIMIZERS, *SCHEDULES])  # fmt: skip
def test_stopped_and_resumed_it_ends_with_the_same_bits(tmp_path, monkeypatch, settings) -> None:
    monkeypatch.setattr(loop, "REPORT_SECONDS", 0.0)
    settings = {key: f"{name}({NEEDED.get(name, '')})" for key, name in settings.items()}
    members = [member_with(**settings)]
    whole = train_here(PLAN, members, TINY)
    for stop in (2, 5, 10):
        with pytest.raises(KeyboardInterrupt):
            train_here(PLAN, members, TINY, folders=[tmp_path], report=interrupted_at(stop, signal.SIGINT))
    (resumed,) = train_here(PLAN, members, TINY, folders=[tmp_path])
    assert_same(whole[0], resumed)
    if "schedule" in settings:  # it changed something
        (constant,) = train_here(PLAN, [member_with()], TINY, stacked=False)
        assert not torch.equal(next(iter(constant.weights.values())), next(iter(resumed.weights.values())))


@pytest.mark.parametrize("family", ["factor_vae", "qlae"])
def test_a_schedule_alone_leaves_every_step_of_the_family_its_own_adam(family) -> None:
    """Two optimizer steps with rates and betas of their own; weight decay of the weights alone."""
    plan, network = Plan(family, STEPS, 8, "cpu", "float32"), {"network": "dense"}
    (own,) = train_here(plan, [member(family, 0, **network)], TINY, stacked=False)
    (made,) = train_here(plan, [member(family, 0, **network, schedule="ConstantLR(factor=1.0)")], TINY)
    for name, value in own.weights.items():
        torch.testing.assert_close(made.weights[name], value, rtol=1e-4, atol=1e-6)


def test_members_with_an_optimizer_of_pytorch_are_not_stacked() -> None:
    row, settings = FAMILIES["vae"], {"optimizer": "SGD", "schedule": "constant"}
    assert row.stacks("float32", {**settings, "optimizer": "family"})
    assert not row.stacks("float32", settings)
    assert uses_torch({"schedule": "StepLR(step_size=3)"})


def test_warm_up_and_clipping_come_on_top() -> None:
    (plain,) = train_here(PLAN, [member_with(optimizer="SGD")], TINY)
    (warm,) = train_here(PLAN, [member_with(optimizer="SGD", rate_warmup=STEPS)], TINY)
    (cut,) = train_here(PLAN, [member_with(optimizer="SGD", clip=1e-6)], TINY)
    (none,) = train_here(PLAN, [member_with(optimizer="SGD", clip=1e12)], TINY)
    name = next(iter(plain.weights))
    assert not torch.equal(plain.weights[name], warm.weights[name])
    assert not torch.equal(plain.weights[name], cut.weights[name])
    assert torch.equal(plain.weights[name], none.weights[name])


@pytest.mark.parametrize(
    ("settings", "said"),
    [
        ({"optimizer": "Adamw"}, "there is no Adamw; did you mean 'AdamW'"),
        ({"optimizer": "SGD(momentm=0.9)"}, "SGD has no option 'momentm'; did you mean 'momentum'"),
        ({"optimizer": "SGD(lr=0.1)"}, "takes its learning rate from the hyperparameter"),
        ({"optimizer": "SGD(momentum=-1)"}, "optimizer SGD.*Invalid momentum"),
        ({"optimizer": "SGD(momentum=print())"}, "write it as in Python"),
        ({"optimizer": "LBFGS"}, "optimizer LBFGS: .*closure"),
        ({"schedule": "CosineAnnealing"}, "did you mean 'CosineAnnealingLR'"),
        ({"schedule": "CosineAnnealingLR"}, "schedule CosineAnnealingLR: .*T_max"),
        ({"schedule": "OneCycleLR(max_lr=0.1, total_steps=10)"}, "ends after 10 of 20 steps"),
        ({"scheduler": "StepLR"}, "did you mean 'schedule'"),
    ],
)
def test_what_torch_cannot_do_is_refused_before_anything_is_read(tmp_path, settings, said) -> None:
    with pytest.raises(ValueError, match=said):
        unbraid.train("beta_vae", str(tmp_path / "nowhere"), steps=20, out=tmp_path / "runs", **settings)


def test_options_in_another_order_are_the_same_run(tmp_path) -> None:
    names = [
        unbraid.train("vae", TINY, steps=1, network="dense", optimizer=text, out=tmp_path, processes=0)[0].path
        for text in ("SGD(momentum=0.5,nesterov=True)", "SGD( nesterov = True, momentum = .5 )")
    ]
    assert names[0] == names[1]
