"""WeakDE in training: classes, the moment the prior is fitted, and what the discriminator is shown."""

from typing import Any

import numpy as np
import torch

from tests.training.training_examples import SPACE, TINY, member
from unbraid.data import FactorTable
from unbraid.families.building import build_member, make_supply
from unbraid.families.family_table import FAMILIES
from unbraid.training.population import make_context, make_population

ROW = FAMILIES["weak_de"]


def test_labels_are_classes_of_ranges_and_even() -> None:
    """Nine places in three ranges each, three shades: 27 classes in C order, three labels of each."""
    context = make_context(ROW, [member("weak_de")], TINY, batch_size=8, steps=10)
    assert context.settings["ranges"] == [3, 3, 3]
    supply = make_supply(ROW, SPACE, context.settings, 0)
    assert supply
    assert supply.used == {"labels": 81}
    x, y, shade = SPACE.factors(supply.items["labelled"].positions).T
    classes = supply.items["labelled"].known["classes"]
    np.testing.assert_array_equal(classes, 9 * (x // 3) + 3 * (y // 3) + shade)
    assert np.bincount(classes).tolist() == [3] * 27


def test_combinations_held_out_of_a_dataset_are_no_fault() -> None:
    """Half of the images, none of shade 0 on the left: those classes stay unfitted, the others share the labels."""
    factors = SPACE.grid()
    table = FactorTable(SPACE.names, SPACE.kinds, factors[(factors[:, 0] > 2) | (factors[:, 2] > 0)])
    assert ROW.facts
    chosen = {"classes": "position_x+shade", "labels": 40, "bins": 3, "kinds": [], "latents": 2}
    settings = {**chosen, **ROW.facts(table, chosen)}
    supply = make_supply(ROW, table, settings, 0)
    assert supply
    counts = np.bincount(np.asarray(supply.items["labelled"].known["classes"]), minlength=9)
    assert counts.tolist() == [0, *[5] * 8]


def test_the_prior_is_fitted_once_when_the_warm_up_is_over() -> None:
    """Of 12 steps the first half is warm-up; the encodings are those between steps 6 and 7."""
    chosen = member("weak_de", 3, network="dense", warmup=0.5, latents=2, learning_rate=1e-2, spread=0.3)
    context = make_context(ROW, [chosen], TINY, batch_size=8, steps=12)
    cpu = torch.device("cpu")
    population = make_population(ROW, [chosen], TINY, context, device=cpu, precision=torch.float64)
    moved: list[bool] = []
    for step in range(6):
        moved.append("loss/relations" in population.advance(step))
    before = population.state(0)
    assert not before["model/prior.known"].any()
    modules: Any = build_member(ROW, TINY.image_shape, context.settings, 3).double()
    modules.load_state_dict({name[6:]: value for name, value in before.items() if name.startswith("model/")})
    supply = make_supply(ROW, SPACE, context.settings, 3)
    assert supply
    labelled = supply.items["labelled"]
    images = torch.from_numpy(TINY.images(labelled.positions) / 255).movedim(-1, 1)
    with torch.no_grad():
        codes = modules["encoder"](images).numpy()
    for step in range(6, 12):
        moved.append("loss/relations" in population.advance(step))
        after = population.state(0)
        for number in range(27):
            own = codes[labelled.known["classes"] == number]
            np.testing.assert_allclose(after["model/prior.means"][number], own.mean(0), rtol=1e-6, atol=1e-9)
            root = after["model/prior.roots"][number].numpy()
            np.testing.assert_allclose(root @ root.T, 0.3 * np.cov(own.T) + 1e-4 * np.eye(2), rtol=1e-6, atol=1e-9)
    assert moved == [False] * 6 + [True] * 6


def test_the_discriminator_is_shown_a_cube_and_then_the_classes() -> None:
    chosen = member("weak_de", network="dense", warmup=0.5, latents=2)
    context = make_context(ROW, [chosen], TINY, batch_size=3, steps=10)
    modules: Any = build_member(ROW, TINY.image_shape, context.settings, 0)
    far = torch.tensor([[10.0, 0.0], [20.0, 0.0]])
    modules["prior"].fit(torch.cat([far, far + 1]), torch.tensor([4, 9, 4, 9]), 0.1)
    shown: list[torch.Tensor] = []
    modules["discriminator"].register_forward_pre_hook(lambda _, given: shown.append(given[0]))
    uniform, noise = torch.tensor([[0.0, 0.5], [1.0, 0.25], [0.5, 0.5]]), torch.zeros(3, 2)
    batch = {
        "codes": torch.zeros(3, 2), "prior cube": uniform, "prior noise": noise,
        "prior class": torch.tensor([0.1, 0.9, 0.4]),
    }  # fmt: skip
    for step in (4, 5):
        ROW.optimizer_steps[3].loss(modules, batch, {}, step, context)
    assert shown[1].tolist() == [[-1, 0], [1, -0.5], [0, 0]]
    assert shown[3].tolist() == [[10.5, 0.5], [20.5, 0.5], [10.5, 0.5]]


def test_codes_too_large_for_their_covariance_stop_the_model_and_not_the_training() -> None:
    """Two images in each class; beside codes of 1e9 the ridge is lost to rounding, and no Cholesky root is there."""
    one = member("weak_de", 0, network="dense", classes="shade", labels=6, warmup=0.5)
    context = make_context(ROW, [one], TINY, batch_size=8, steps=4)
    for stacked in (False, True):
        population = make_population(ROW, [one], TINY, context, device=torch.device("cpu"), stacked=stacked)
        state = population.state(0)
        state["model/encoder.5.weight"] *= 1e10
        population.load_state(0, state)
        population.advance(2)
        (reason,) = population.diverged()
        assert reason is not None
        assert (reason.step, reason.reason) == (2, "the loss of the relations is not finite")
        assert all(torch.isfinite(value).all() for name, value in population.state(0).items() if "roots" not in name)
