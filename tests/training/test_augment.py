"""Images of batches changed by the user's own function: as in a plain loop, stopped and resumed, and refused."""

import functools
import linecache

import numpy as np
import pytest
import torch

import unbraid
from tests.training.training_examples import TINY, member
from unbraid.base.seeds import stream
from unbraid.families.building import build_member, structural_settings
from unbraid.families.family_table import FAMILIES
from unbraid.families.likelihoods import bernoulli_nll
from unbraid.families.vae import beta_vae
from unbraid.files.trust import UntrustedCode, named
from unbraid.fitting.plan import FinalRound, Plan, SearchRound, Setting
from unbraid.metrics._shared.provenance import source_digest
from unbraid.training import batches, loop
from unbraid.training.loop import train_here

STEPS, SIZE = 12, 8
SETTINGS = {
    "seeds": [1], "steps": STEPS, "batch_size": SIZE, "device": "cpu", "precision": "float32", "processes": 0,
    "network": "dense", "latents": 3, "learning_rate": 1e-2,
}  # fmt: skip


def flipped(images: torch.Tensor) -> torch.Tensor:
    """Each image as it is or mirrored, by a throw of torch's generator."""
    mirror = torch.rand(len(images)) < 0.5
    return torch.where(mirror[:, None, None, None], images.flip(-1), images)


def darkened(images: torch.Tensor, most: float) -> torch.Tensor:
    return images * (1 - most * torch.rand(len(images), 1, 1, 1))


class Darkening:
    def __init__(self, most: float) -> None:
        self.most = most

    def __call__(self, images: torch.Tensor) -> torch.Tensor:
        return darkened(images, self.most)


def by_numpy(images: torch.Tensor) -> torch.Tensor:
    return images * float(np.random.default_rng().random())


def brightened(images: torch.Tensor) -> torch.Tensor:
    return images + 1


def cut(images: torch.Tensor) -> torch.Tensor:
    return images[..., 1:]


def trained(out, augment=flipped, **more):
    (run,) = unbraid.train("beta_vae", TINY, out=out, augment=augment, **{**SETTINGS, **more})
    return run


def test_the_weights_are_those_of_a_plain_loop_that_flips(tmp_path) -> None:
    family, chosen = FAMILIES["beta_vae"], member("beta_vae", 1, network="dense", latents=3)
    modules = build_member(family, TINY.image_shape, structural_settings(family, [chosen]), 1)
    modules.double()  # in single precision Adam carries the rounding of a gradient near 0 into a whole step
    adam = torch.optim.Adam(modules.parameters(), lr=1e-2)
    keys = batches.streams([1], "images/images/0")
    order = batches.epoch_positions(keys, 0, STEPS * SIZE, len(TINY))[0]
    noise_keys = batches.streams([1], "normal/noise/0")
    for step in range(STEPS):
        images = torch.from_numpy(TINY.images(order[step * SIZE : (step + 1) * SIZE].numpy()) / 255)
        torch.manual_seed(stream(1, f"augment/images/images/0/{step}") & (1 << 63) - 1)
        images = flipped(images.movedim(-1, 1))
        outputs = modules["vae"](images, batches.normal(noise_keys, step, (SIZE, 3))[0].double())
        loss, _ = beta_vae(outputs, bernoulli_nll(outputs.decoded, images), beta=float(chosen.hyper["beta"]))
        adam.zero_grad()
        loss.backward()
        adam.step()
    run = trained(tmp_path, precision="float64")
    for name, value in modules.state_dict().items():
        torch.testing.assert_close(run.modules.state_dict()[name], value, rtol=1e-8, atol=1e-10)
    assert run.config["hyperparameters"]["augment"] == f"{__name__}:flipped"
    assert list(run.config["code"]) == [f"{__name__}:flipped"]
    # What is encoded afterwards is not changed.
    encoded = run.encode(TINY.images(np.arange(5)))
    np.testing.assert_allclose(encoded, run.representation(TINY).codes[:5], atol=1e-5)


def test_stopped_and_resumed_it_ends_with_the_same_bits_whatever_else_draws(tmp_path, monkeypatch) -> None:
    monkeypatch.setattr("unbraid.training.loop.REPORT_SECONDS", 0.0)

    def stop(sent) -> None:
        torch.rand(1)
        if max(sent.steps_taken.values(), default=0) >= 5:
            raise KeyboardInterrupt

    whole = trained(tmp_path / "whole")
    with pytest.raises(KeyboardInterrupt):
        trained(tmp_path / "stopped", progress=stop, checkpoint_every=0)
    resumed = trained(tmp_path / "stopped")
    assert resumed.path.name == whole.path.name
    assert _weights(resumed) == _weights(whole)
    assert _weights(whole) != _weights(trained(tmp_path / "plain", augment="none"))
    by_name = trained(tmp_path / "whole", augment=f"{__name__}:flipped")
    assert by_name.path == whole.path


def test_members_trained_together_are_changed_by_their_own_seeds() -> None:
    members = [member("vae", seed, network="dense", augment=named(flipped)) for seed in (0, 1)]
    plan = loop.Plan("vae", 5, SIZE, "cpu", "float32")
    together = train_here(plan, members, TINY, stacked=True)
    for one, number in zip(together, range(2), strict=True):
        (alone,) = train_here(plan, [members[number]], TINY, stacked=False)
        for name, value in alone.weights.items():
            torch.testing.assert_close(one.weights[name], value, rtol=1e-3, atol=1e-5)


def test_images_of_pairs_are_changed_too() -> None:
    plan = loop.Plan("ada_gvae", 3, SIZE, "cpu", "float32")
    runs = [
        train_here(plan, [member("ada_gvae", network="dense", augment=a)], TINY)[0] for a in ("none", named(flipped))
    ]
    assert not np.array_equal(runs[0].curves["loss/vae"], runs[1].curves["loss/vae"])


def test_a_longer_training_needs_the_function_again(tmp_path) -> None:
    run = unbraid.load_run(trained(tmp_path).path)
    with pytest.raises(UntrustedCode, match="was trained with the augmentation .*flipped', which it needs again"):
        unbraid.continue_run(run, 20, dataset=TINY)
    with pytest.raises(ValueError, match=r"was trained with the augmentation .*flipped', not .*cut'"):
        unbraid.continue_run(run, 20, dataset=TINY, augment=cut)
    longer = unbraid.continue_run(run, 20, dataset=TINY, augment=flipped, processes=0)
    whole = trained(tmp_path / "whole", steps=20)
    assert _weights(longer) == _weights(whole)


@pytest.mark.lengthy
def test_objects_are_named_by_what_they_hold(tmp_path) -> None:
    """Two with other settings are two runs, also in worker processes."""
    names = [
        trained(tmp_path, augment=augment).config["hyperparameters"]["augment"]
        for augment in (Darkening(0.5), Darkening(0.9), Darkening(0.5), functools.partial(darkened, most=0.5))
    ]
    assert names[0] == names[2]
    assert len(set(names)) == 3
    here, worker = (
        trained(tmp_path, augment=Darkening(0.5)),
        trained(tmp_path / "worker", augment=Darkening(0.5), processes=1),
    )
    assert _weights(here) == _weights(worker)


@pytest.mark.parametrize(
    ("augment", "said"),
    [
        (lambda images: images, "give a function that is defined at the top of a module"),
        (cut, r"must return a tensor \(8, 1, 8, 8\), as it was given; got \(8, 1, 8, 7\)"),
        (brightened, "must give values from 0 to 1; got 1 to"),
        (by_numpy, "must draw its random numbers from torch"),
        ("tests.training.test_augment:nothing", "augment .* cannot be imported"),
        (7, "augment must be one of none, or your own as package.module:function; got 7"),
    ],
)
def test_what_cannot_be_used_is_refused_before_training(tmp_path, augment, said) -> None:
    with pytest.raises(ValueError, match=said):
        trained(tmp_path / "runs", augment=augment)
    assert not (tmp_path / "runs").exists()


@pytest.mark.lengthy
def test_fit_changes_the_images_of_every_model_and_needs_the_function_again(tmp_path) -> None:
    images = np.random.default_rng(0).integers(0, 256, (500, 16, 16, 1), dtype=np.uint8)
    setting = Setting(family="beta_vae", strength=1)
    plan = Plan(
        minutes=1, size=16, latents=3, augment=f"{__name__}:flipped",
        search=SearchRound(size=16, network="dense", steps=5, seeds=2, settings=[setting]),
        final=FinalRound(size=16, network="dense", steps=5, seeds=2, settings=1, multiples=[1.0]),
    )  # fmt: skip
    with pytest.raises(ValueError, match=r"the plan has augment .*:flipped, not none; give the same"):
        unbraid.fit(images, tmp_path / "fitted", plan=plan)
    here = {"name": "local", "processes": 0}
    fitted = unbraid.fit(images, tmp_path / "fitted", plan=plan, augment=flipped, executor=here)
    assert [one.config["hyperparameters"]["augment"] for one in map(unbraid.load_run, _runs(fitted.folder))] == [
        f"{__name__}:flipped"
    ] * 2
    with pytest.raises(ValueError, match=r"the plan has augment .*:flipped, not none; give the same"):
        unbraid.fit(images, tmp_path / "fitted", latents=3, families=["beta_vae"])


def _runs(folder) -> list:
    return [path for path in sorted((folder / "search" / "runs").iterdir()) if not path.suffix]


def test_a_changed_cell_of_a_notebook_is_another_function() -> None:
    digests = []
    for text in ("def changed(x):\n    return x\n", "def changed(x):\n    return 1 - x\n"):
        file = f"<ipython-input-{len(digests)}>"
        lines: list[str] = [*text.splitlines(keepends=True)]
        linecache.cache[file] = (len(text), None, lines, file)
        content: dict = {"__name__": "nowhere"}
        exec(compile(text, file, "exec"), content)  # noqa: S102
        digests.append(source_digest("nowhere:changed", content["changed"]))
    assert digests[0] != digests[1]


def _weights(run) -> bytes:
    return (run.path / "weights.safetensors").read_bytes()
