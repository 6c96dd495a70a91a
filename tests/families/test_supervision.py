"""What members are told about images, whose turn it is, and what is done once in a training."""

import math
import re
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor, nn

import unbraid
from tests.training.test_loop import assert_same, interrupted_at
from tests.training.training_examples import SPACE, blocks, member
from unbraid.data import FactorSpace, FactorTable
from unbraid.data.image_dataset import ArrayDataset
from unbraid.datasets import load
from unbraid.families import (
    Adam,
    Context,
    Draw,
    Event,
    Family,
    Hyperparameter,
    Items,
    OptimizerStep,
    Part,
    Supervision,
    Supply,
)
from unbraid.families.building import Member, make_supply
from unbraid.families.family import TRAINING
from unbraid.families.family_table import FAMILIES
from unbraid.families.supervision import alternating, cyclic_of
from unbraid.runs import run_traversals as traversals
from unbraid.runs.run_traversals import traverse
from unbraid.training import loop
from unbraid.training.draws import Draws, Images
from unbraid.training.loop import Plan, train_here
from unbraid.training.population import Population, make_context, make_population

CPU = torch.device("cpu")
DATASET = blocks()
TINY = ArrayDataset(np.ascontiguousarray(DATASET.array[:, ::4, ::4]), SPACE)  # 8 x 8
SUPERVISED = [name for name, family in FAMILIES.items() if family.supervision]


def some_pairs(space: Any, settings: Mapping[str, Any], seed: int) -> Supply:
    positions = np.random.default_rng(seed).permutation(len(space))[: 2 * settings["pairs"]].reshape(-1, 2)
    return Supply({"pairs": Items(positions, {"levels": space.factors(positions)})}, {"pairs": settings["pairs"]})


def of_pairs(modules: nn.ModuleDict, batch, hyper, step, context) -> tuple[Tensor, dict, dict]:  # noqa: ARG001
    """The weight learns the mean of these images, the more so for large levels."""
    weights = 1 + batch["pairs levels"].sum(-1)
    means = batch["pairs"].flatten(2).mean(-1)
    return (weights * (means - modules["line"](means.new_ones(1, 1)))).square().mean(), {}, {}


def of_images(modules: nn.ModuleDict, batch, hyper, step, context) -> tuple[Tensor, dict, dict]:  # noqa: ARG001
    means = batch["images"].flatten(1).mean(-1)
    return (means - modules["line"](means.new_ones(1, 1)) - modules["line"].fixed).square().mean(), {}, {}


class Line(nn.Linear):
    fixed: Tensor

    def __init__(self) -> None:
        super().__init__(1, 1)
        self.register_buffer("fixed", torch.zeros(1))


def fix(modules: nn.ModuleDict, supply: Supply, images, hyper, context) -> None:  # noqa: ARG001
    """Once: the mean brightness of the pairs, times a number of the member's, and all that was learned is doubled."""
    line = modules["line"]
    assert isinstance(line, Line)
    line.fixed.fill_(hyper["scale"] * float(images(supply.items["pairs"].positions).mean()))
    line.weight.mul_(2)


def rounds(context: Context) -> tuple[int, int]:
    return context.passes["pairs"], context.image_pass


TOY = Family(
    title="Toy",
    build=lambda shape, settings: nn.ModuleDict({"line": Line()}),  # noqa: ARG005
    optimizer_steps=(
        OptimizerStep("pairs", ("line",), of_pairs, (Draw("pairs", "given"),), Adam(0.1), turn=alternating(rounds, 0)),
        OptimizerStep(
            "images", ("line",), of_images, (Draw("images", "images"),), Adam(0.1), turn=alternating(rounds, 1)
        ),
    ),
    hyperparameters={
        "pairs": Hyperparameter(10, "", 0, 1e3, kind="int", structural=True),
        "scale": Hyperparameter(1.0, ""),
    },
    encode=lambda modules, images, settings: (images.flatten(1)[:, :1], None),  # noqa: ARG005
    decode=lambda modules, codes, settings: codes,  # noqa: ARG005
    source="",
    supervision=Supervision("pairs", "", ("pairs",), some_pairs),
    events=(Event(lambda context: 40, fix),),  # noqa: ARG005
)


def toys(*members: Member, batch_size: int = 8, family: Family = TOY, **options: Any) -> Population:
    context = make_context(family, members, TINY, batch_size=batch_size, steps=100)
    return make_population(family, members, TINY, context, device=CPU, precision=torch.float64, **options)


def toy(seed: int, **hyper: float) -> Member:
    usual = {name: each.default for name, each in TRAINING.items()}
    return Member(seed, {**usual, "pairs": 10, "scale": 1.0 + seed, **hyper})


def test_items_come_once_before_any_comes_twice_with_what_is_known_of_them() -> None:
    """10 pairs in batches of 4: every pair 4 times in 10 turns; another order for another seed."""
    population = toys(toy(0), toy(1))
    supplies = [make_supply(TOY, SPACE, {"pairs": 10}, seed) for seed in (0, 1)]
    draws = Draws([0, 1], population.context, Images(TINY, CPU), supplies)
    chosen: list[list[list[int]]] = [[], []]
    for turn in range(10):
        batch = draws.batch(TOY.optimizer_steps[0], 3 * turn, turn, 0)  # the turn counts, not the step
        assert batch["pairs"].shape == (2, 4, 2, 1, 8, 8)
        levels = batch["pairs levels"].numpy()
        assert levels.shape == (2, 4, 2, 3)
        for number in (0, 1):
            positions = SPACE.index(levels[number])
            np.testing.assert_array_equal(
                batch["pairs"][number, :, :, 0] * 255, TINY.images(positions.ravel()).reshape(4, 2, 8, 8)
            )
            chosen[number] += positions.tolist()
    for number, supply in enumerate(supplies):
        assert supply is not None
        expected = sorted(supply.items["pairs"].positions.tolist())
        assert sorted(chosen[number]) == sorted(4 * expected)
        for start in range(0, 40, 10):
            assert sorted(chosen[number][start : start + 10]) == expected
    assert chosen[0] != chosen[1]


@pytest.mark.parametrize(("shape", "per_batch", "batch_size", "expected"), [
    ((10, 2), 0, 8, 4), ((10, 2), 0, 100, 10), ((10, 2), 3, 8, 3), ((5, 64), 0, 8, 1), ((10,), 0, 8, 8),
    ((0, 2), 0, 8, 0), ((7, 2), 9, 8, 7),
])  # fmt: skip
def test_a_batch_has_as_many_items_as_hold_its_images(shape, per_batch, batch_size, expected) -> None:
    items = Items(np.zeros(shape, dtype=np.int64), per_batch=per_batch)
    assert items.at_a_time(batch_size) == expected


def test_noise_for_items_has_a_row_for_each_of_their_images() -> None:
    population = toys(toy(0))
    draws = Draws([0], population.context, Images(TINY, CPU), [make_supply(TOY, SPACE, {"pairs": 10}, 0)])
    noise = draws(Draw("noise", "normal", (5,), of="pairs"), 0, 0, 0)["noise"]
    assert noise.shape == (1, 4, 2, 5)
    assert draws(Draw("none", "normal", (0,)), 0, 0, 0)["none"].shape == (1, 8, 0)


def test_players_take_turns_each_with_an_adam_of_its_own() -> None:
    """Against torch's Adam, two of them on the same weights; 3 moves for 10 pairs, then 31 for 243 images."""
    population = toys(toy(0), family=replace(TOY, events=()))
    assert rounds(population.context) == (3, 31)
    supplies = [make_supply(TOY, SPACE, {"pairs": 10}, 0)]
    draws = Draws([0], population.context, Images(TINY, CPU, torch.float64), supplies)
    line = Line().double()
    state = population.state(0)
    line.load_state_dict({name.removeprefix("model/line."): state[name] for name in state if "model" in name})
    adams = [torch.optim.Adam(line.parameters(), lr=0.1) for _ in TOY.optimizer_steps]
    taken = [0, 0]
    for step in range(80):
        mover = 0 if step % 34 < 3 else 1
        drawn = draws.batch(TOY.optimizer_steps[mover], step, taken[mover], 0)
        batch = {name: value[0] for name, value in drawn.items()}
        loss = TOY.optimizer_steps[mover].loss(nn.ModuleDict({"line": line}), batch, {}, step, population.context)[0]
        adams[mover].zero_grad()
        loss.backward()
        adams[mover].step()
        taken[mover] += 1
        logs = population.advance(step)
        assert list(logs) == [f"loss/{TOY.optimizer_steps[mover].name}"]
        torch.testing.assert_close(next(iter(logs.values()))[0], loss.detach())
    torch.testing.assert_close(population.state(0)["model/line.weight"], line.weight.detach())


def test_what_is_done_once_is_done_to_each_member_alone_or_stacked() -> None:
    members = [toy(0), toy(1), toy(2)]
    stacked, alone = toys(*members), [toys(each) for each in members]
    before: dict[str, Tensor] = {}
    for step in range(60):
        if step == 40:
            before = stacked.state(1)
        for each in (stacked, *alone):
            each.advance(step)
        if step == 40:
            supply = make_supply(TOY, SPACE, {"pairs": 10}, 1)
            assert supply is not None
            mean = TINY.images(supply.items["pairs"].positions.ravel()).mean() / 255
            assert float(before["model/line.fixed"]) == 0
            assert float(stacked.state(1)["model/line.fixed"]) == pytest.approx(2 * mean)
            moved = stacked.state(1)["model/line.weight"] - 2 * before["model/line.weight"]
            assert 0 < float(moved.abs()) < 0.2  # doubled, then one step of Adam
    for index, each in enumerate(alone):
        mine, theirs = stacked.state(index), each.state(0)
        for name in theirs:
            torch.testing.assert_close(mine[name], theirs[name], rtol=1e-9, atol=1e-9)


def test_a_family_may_say_why_it_cannot_be_stacked() -> None:
    family = replace(TOY, not_stackable_reason="its loss draws numbers")
    with pytest.raises(ValueError, match="cannot be stacked: its loss draws numbers"):
        toys(toy(0), toy(1), family=family)
    toys(toy(0), family=family)


@pytest.mark.parametrize("family", SUPERVISED)
def test_supervision_is_a_function_of_the_seed_and_counted(family: str) -> None:
    row = FAMILIES[family]
    assert row.supervision is not None
    assert row.supervision.needs
    assert all(row.hyperparameters[name].is_structural for name in row.supervision.amounts)
    members = [member(family, seed) for seed in (0, 0, 1)]
    context = make_context(row, members[:1], DATASET, batch_size=8, steps=10)
    one, same, other = (make_supply(row, SPACE, context.settings, each.seed) for each in members)
    assert one
    assert same
    assert other
    assert one.used == same.used
    assert set(one.items) == set(other.items) == set(context.passes)
    for name, items in one.items.items():
        np.testing.assert_array_equal(items.positions, same.items[name].positions)
        assert items.positions.shape == other.items[name].positions.shape
        assert items.known.keys() == other.items[name].known.keys()
        for told, values in items.known.items():
            np.testing.assert_array_equal(values, same.items[name].known[told])
            assert values.shape == other.items[name].known[told].shape
            assert len(values) == len(items.positions)
    differ = any((items.positions != other.items[name].positions).any() for name, items in one.items.items())
    assert differ or family == "mtd", "which labels all images unless asked otherwise"


@pytest.mark.parametrize(("family", "settings"), [
    ("ada_gvae", {}),
    ("ada_ml_vae", {}),
    ("delta_vae", {"euclidean": 2}),
    ("lsbd_vae", {}),
    ("lsbd_vae", {"supervision": "paths", "paths": 3, "path_length": 5, "path_step": 1}),
    ("parted_vae", {}),
    ("weak_de", {}),
    ("mtd", {"swap_weight": 1.0}),
])  # fmt: skip
def test_interrupted_supervised_trainings_end_as_if_never_stopped(family, settings, tmp_path, monkeypatch) -> None:
    monkeypatch.setattr(loop, "REPORT_SECONDS", 0.0)
    monkeypatch.setattr(loop, "CURVE_POINTS", 4)
    plan = Plan(family, steps=14, batch_size=16, device="cpu", precision="float32")
    members = [member(family, 3, network="dense", learning_rate=1e-3, **settings)]
    whole = train_here(plan, members, TINY)
    for stop in (2, 11):
        with pytest.raises(KeyboardInterrupt):
            train_here(plan, members, TINY, folders=[tmp_path], report=interrupted_at(stop))
    resumed = train_here(plan, members, TINY, folders=[tmp_path])
    for name, values in whole[0].curves.items():
        np.testing.assert_array_equal(values, resumed[0].curves[name])
    assert_same(replace(whole[0], curves={}), replace(resumed[0], curves={}))


def test_an_event_is_not_done_again_by_a_training_that_resumes(tmp_path, monkeypatch) -> None:
    monkeypatch.setattr(loop, "REPORT_SECONDS", 0.0)
    monkeypatch.setattr(loop, "find_family", {"toy": TOY}.__getitem__)
    plan = Plan("toy", steps=60, batch_size=8, device="cpu", precision="float32")
    whole = train_here(plan, [toy(1)], TINY)
    for stop in (39, 40, 41, 50):
        with pytest.raises(KeyboardInterrupt):
            train_here(plan, [toy(1)], TINY, folders=[tmp_path], report=interrupted_at(stop))
    resumed = train_here(plan, [toy(1)], TINY, folders=[tmp_path])
    assert all(torch.equal(whole[0].weights[name], resumed[0].weights[name]) for name in whole[0].weights)


def test_curves_are_means_over_the_moves_of_their_player(monkeypatch) -> None:
    """Points at every 15 steps: pairs move at 0-2 and 34-36, so not in the second point."""
    monkeypatch.setattr(loop, "find_family", {"toy": replace(TOY, events=())}.__getitem__)
    plan = Plan("toy", steps=45, batch_size=8, device="cpu", precision="float32")
    fine = train_here(plan, [toy(0)], TINY)[0]
    monkeypatch.setattr(loop, "CURVE_POINTS", 3)
    coarse = train_here(plan, [toy(0)], TINY)[0]
    for name, values in fine.curves.items():
        moved = np.isfinite(values)
        assert moved.sum() == (6 if name == "loss/pairs" else 39)
        expected = [
            part[np.isfinite(part)].mean() if np.isfinite(part).any() else np.nan for part in values.reshape(3, 15)
        ]
        np.testing.assert_allclose(coarse.curves[name], expected, rtol=1e-6)
    assert np.isnan(coarse.curves["loss/pairs"]).tolist() == [False, True, False]


def test_without_labelled_pairs_lsbd_vae_is_delta_vae() -> None:
    weights = []
    for family, settings in (("lsbd_vae", {"pairs": 0}), ("delta_vae", {})):
        plan = Plan(family, steps=12, batch_size=16, device="cpu", precision="float32")
        weights.append(train_here(plan, [member(family, 2, network="dense", **settings)], TINY)[0].weights)
    assert weights[0].keys() == weights[1].keys()
    assert all(torch.equal(weights[0][name], weights[1][name]) for name in weights[0])


def test_images_of_groups_are_left_to_their_own_pass() -> None:
    row = FAMILIES["lsbd_vae"]
    context = make_context(row, [member("lsbd_vae")], DATASET, batch_size=16, steps=10)
    supply = make_supply(row, SPACE, context.settings, 0)
    assert supply
    assert supply.used == {"pairs": 20, "labelled_images": 40}
    grouped, left = supply.items["groups"].positions, supply.items["images"].positions
    assert sorted([*grouped.ravel().tolist(), *left.tolist()]) == list(range(243))
    assert context.passes == {"groups": 3, "images": 13}
    first, second = (SPACE.factors(grouped[:, number])[:, :2] for number in (0, 1))
    turned = (first + np.rint(9 * supply.items["groups"].known["turns"][:, 1]).astype(int)) % 9
    np.testing.assert_array_equal(turned, second)


TURNING = FactorSpace(("object", "azimuth"), (27, 9), ("categorical", "cyclic"))
STILL = FactorSpace(("shape", "size"), (27, 9), ("categorical", "ordinal"))
TABLE = FactorTable(("y", "x"), ("cyclic", "ordinal"), np.zeros((243, 2), dtype=np.int64))


@pytest.mark.parametrize(("family", "space", "settings", "reason"), [
("lsbd_vae", STILL, {}, "none of the factors shape, size is cyclic"),
("lsbd_vae", TABLE, {}, "no full grid of factors"),
("lsbd_vae", SPACE, {"circles": 1}, "2 cyclic factors .* got circles 1"),
("lsbd_vae", SPACE, {"pairs": 500}, "\\bpairs must .*no more disjoint pairs.*; got 500"),
("lsbd_vae", SPACE, {"supervision": "paths", "path_step": 10}, "\\bpath_step must .*, 1 to 9 .*; got 10"),
("lsbd_vae", SPACE, {"supervision": "paths", "path_length": 10**6, "paths": 10**6}, "\\bpaths . path_length must"),
("lsbd_vae", TURNING, {"supervision": "turntables", "turntables": 28}, "\\bturntables must .*, 1 to 27 .*; got 28"),
("quessard", SPACE, {"action_step": 10}, "\\baction_step must .*; got 10"),
("delta_vae", STILL, {}, "say how many circles="),
("mtd", SPACE, {"factors": "shade+shade"}, "factors must differ from each other"),
("mtd", SPACE, {"labels": 244}, "\\blabels must .*, 0 to 243 .*; got 244"),
("weak_de", STILL, {"labels": 244}, "\\blabels must .*, 0 to 243 .*; got 244"),
("parted_vae", SPACE, {"labels": 5}, "none of its factors position_x, position_y, shade is categorical"),
("parted_vae", STILL, {"labels": 500}, "\\blabels must .*, 0 to 243 .*; got 500"),
("parted_vae", STILL, {"classes": "3+1"}, "needs at least two classes; got classes 3\\+1"),
("ada_ml_vae", SPACE, {"changed": 4}, "\\bchanged must .*, 1 to 3 .*; got 4"),
])  # fmt: skip
def test_a_dataset_that_cannot_give_it_is_refused_with_the_reason(family, space, settings, reason, tmp_path) -> None:
    dataset = ArrayDataset(TINY.array, space)
    given = {**{name: value for name, value in member(family).hyper.items() if name in ("pairs",)}, **settings}
    title = re.escape(FAMILIES[family].title)
    with pytest.raises(ValueError, match=rf"{title} cannot be trained on this dataset: .*{reason}"):
        unbraid.train(family, dataset, steps=1, out=tmp_path, network="dense", processes=0, **given)
    assert not list(tmp_path.iterdir())


def test_runs_on_circles_say_what_they_were_told_and_what_their_codes_are(tmp_path) -> None:
    """Whole turntables of 27 objects: one group of 9 a batch; codes are a circle and five lines."""
    dataset = ArrayDataset(TINY.array, TURNING)
    run = unbraid.train(
        "lsbd_vae", dataset, steps=30, batch_size=8, out=tmp_path, processes=0, precision="float32",
        supervision="turntables", turntables=20, network="dense",
    )[0]  # fmt: skip
    run = unbraid.load_run(run.path)
    assert run.config["supervision"] == {"turntables": 20, "labelled_images": 180}
    assert run.config["facts"] == {"circles": 1, "euclidean": 5, "turning": ["azimuth"]}
    assert run.config["codes"] == [
        {"name": "azimuth", "kind": "circle", "size": 2},
        {"name": "euclidean", "kind": "gaussian", "size": 5},
    ]
    codes = run.encode(dataset.images(np.arange(20)))
    assert codes.shape == (20, run.n_codes) == (20, 7)
    np.testing.assert_allclose((codes[:, :2] ** 2).sum(1), 1, rtol=1e-6)
    assert run.decode(codes).shape == (20, 8, 8, 1)
    assert run.codes().log_variances is None
    assert all(np.isfinite(value) for value in run.status["last"].values())
    assert {"loss/groups", "loss/images", "lsbd", "kl_circles", "group_reconstruction"} <= run.status["last"].keys()
    with pytest.raises(ValueError, match=r"codes must be \(n, 7\)"):
        run.decode(codes[:, :5])
    scores = unbraid.score(
        codes=run.encode(dataset.images(np.arange(243))), factors=TURNING.grid(), kinds=TURNING.kinds, metrics="d_lsbd"
    )
    assert 0 <= scores["d_lsbd"].score <= 1


def test_traversals_go_around_a_circle_and_along_the_lines(tmp_path) -> None:
    dataset = ArrayDataset(DATASET.array, TURNING)
    run = unbraid.train(
        "lsbd_vae", dataset, steps=1, out=tmp_path, processes=0, network="dense", supervision="turntables", euclidean=2
    )[0]
    found = traverse(run, dataset, rows=2, steps=4, shown=2)
    assert found.images.shape == (3, 2, 4, 32, 32, 1)
    circle = found.circles.index("azimuth")
    np.testing.assert_allclose(found.values[circle], [0, np.pi / 2, np.pi, 3 * np.pi / 2])
    assert sorted(found.codes.tolist()) == [0, 2, 3]
    assert found.captions[circle].startswith("azimuth (codes 0, 1): variance")
    codes = run.encode((found.originals * 255).round().astype(np.uint8))
    codes[:, :2] = [0, 1]
    np.testing.assert_allclose(found.images[circle, :, 1], run.decode(codes), rtol=1e-4, atol=1e-5)


def test_on_a_sphere_the_length_stays() -> None:
    codes = np.tile(np.array([3.0, 0.6, 0.0, 0.8]), (1, 2, 1))
    sphere = traversals._trajectories((Part("euclidean", "point", 1), Part("sphere", "sphere", 3)))[2]
    traversals._move(codes, sphere, np.array([0.0, -0.6]))
    np.testing.assert_allclose(codes[0], [[3, 0.6, 0, 0.8], [3, 0.48, -0.6, 0.64]])


@pytest.mark.parametrize(("base", "low", "high"), [("e", -10, -9), ("ten", -10 * math.log(10), -9 * math.log(10))])
def test_bounds_of_t_are_read_either_way(base: str, low: float, high: float) -> None:
    row, settings = FAMILIES["delta_vae"], {"log_t_low": -10.0, "log_t_high": -9.0, "log_t_base": base}
    population = make_population(
        row, [member("delta_vae", network="dense", **settings)], TINY,
        make_context(row, [member("delta_vae", network="dense", **settings)], TINY, batch_size=8, steps=1), device=CPU,
    )  # fmt: skip
    kl = float(population.advance(0)["kl_circles"]) / 2
    most, least = (0.5 * (math.log(2 * math.pi) - 1 - bound) for bound in (low, high))
    assert least < kl < most
    assert kl == pytest.approx((least + most) / 2, abs=0.1)


FEW: dict[str, dict[str, Any]] = {
    "lsbd_vae": {"pairs": 6},
    "ada_gvae": {"pairs": 5},
    "quessard": {"trajectories": 5},
    "forward_vae": {"transitions": 9},
}


@pytest.mark.parametrize("family", FEW)
def test_a_grid_less_whole_levels_will_do(family: str, tmp_path: Path) -> None:
    source = {"name": "square", "positions": 8, "shrink": 8, "without": "y > 3"}
    settings = {"network": "dense", "batch_size": 4, "steps": 1, "processes": 0, "out": tmp_path, **FEW[family]}
    (run,) = unbraid.train(family, source, **settings)
    assert run.status["state"] == "finished"
    with pytest.raises(ValueError, match="no full grid"):
        unbraid.train(family, {**source, "without": "y > 3 and x > 3"}, **settings)


def test_a_circle_of_which_a_part_is_left_is_none() -> None:
    assert cyclic_of(load("square", positions=8, without="y > 3").space) == ("x",)
