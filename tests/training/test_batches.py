"""Random draws: reproducible, independent of company, and of the right distribution."""

import numpy as np
import pytest
import torch
from scipy import stats

from unbraid.datasets import load
from unbraid.families.family import Context, Draw
from unbraid.training import batches, draws

KEYS = batches.streams([0, 1, 2], "images/images/0")


def splitmix64(state: int, position: int) -> int:
    """The generator as its authors print it, in Python's unbounded integers."""
    mask = (1 << 64) - 1
    value = (state + position * 0x9E3779B97F4A7C15) & mask
    value = ((value ^ (value >> 30)) * 0xBF58476D1CE4E5B9) & mask
    value = ((value ^ (value >> 27)) * 0x94D049BB133111EB) & mask
    return value ^ (value >> 31)


def test_splitmix64_gives_the_published_numbers():
    # The first outputs for seed 1234567, as in the test vectors of other implementations (Rosetta Code).
    expected = [6457827717110365317, 3203168211198807973, 9817491932198370423, 4593380528125082431]
    ours = batches.random_bits(torch.tensor(1234567), torch.arange(1, 5)).numpy().view(np.uint64)
    assert ours.tolist() == expected
    assert [splitmix64(1234567, position) for position in range(1, 5)] == expected


@pytest.mark.parametrize("key", [0, -1, 1 << 62, -(1 << 63)])
def test_bits_equal_the_generator_in_unbounded_integers(key):
    ours = batches.random_bits(torch.tensor(key), torch.arange(200)).numpy().view(np.uint64)
    assert ours.tolist() == [splitmix64(key % (1 << 64), position) for position in range(200)]


@pytest.mark.parametrize("n_images", [1, 2, 3, 7, 64, 100, 1000])
def test_every_image_comes_once_an_epoch_and_in_another_order_each(n_images):
    positions = batches.epoch_positions(KEYS, 0, 6 * n_images, n_images).reshape(3, 6, n_images)
    assert (positions.sort(dim=-1).values == torch.arange(n_images)).all()
    if n_images >= 64:
        orders = {tuple(order) for order in positions.reshape(-1, n_images).tolist()}
        assert len(orders) == 18


def test_positions_do_not_depend_on_where_one_starts_or_on_company():
    together = batches.epoch_positions(KEYS, 0, 500, 77)
    assert (batches.epoch_positions(KEYS[1:2], 123, 45, 77) == together[1:2, 123:168]).all()


def test_shuffles_favour_no_place():
    """Where image 0 lands over 4 000 epochs of 10 images, and which image follows it, are uniform."""
    positions = batches.epoch_positions(KEYS[:1], 0, 40_000, 10).reshape(-1, 10).numpy()
    counts = np.bincount(np.nonzero(positions == 0)[1], minlength=10)
    assert stats.chisquare(counts).pvalue > 1e-3
    pairs = np.bincount(positions[:, 0] * 10 + positions[:, 1], minlength=100).reshape(10, 10)
    assert stats.chisquare(pairs[~np.eye(10, dtype=bool)]).pvalue > 1e-3


def test_normal_draws_are_normal_and_uncorrelated():
    draws = batches.normal(KEYS, 5, (5000, 7)).double()
    for member in draws:
        assert stats.kstest(member.flatten().numpy(), "norm").pvalue > 1e-3
        assert torch.corrcoef(member.T).sub(torch.eye(7)).abs().max() < 0.06
        assert abs(torch.corrcoef(member.reshape(2, -1))[0, 1]) < 0.03  # the cosines and the sines of the same angles
    assert torch.corrcoef(draws.flatten(1)).sub(torch.eye(3)).abs().max() < 0.02
    later = batches.normal(KEYS, 6, (5000, 7)).double()
    assert abs(torch.corrcoef(torch.stack([draws[0].flatten(), later[0].flatten()]))[0, 1]) < 0.02


def test_uniform_draws_are_uniform_and_inside():
    draws = batches.uniform(KEYS, 5, (50_000,))
    assert draws.dtype == torch.float32
    assert draws.min() > 0
    assert draws.max() < 1
    assert stats.kstest(draws[0].double().numpy(), "uniform").pvalue > 1e-3


@pytest.mark.parametrize("draw", [batches.normal, batches.uniform, batches.permutations])
def test_a_member_draws_the_same_in_any_company(draw):
    together = draw(KEYS, 9, (33, 3))
    assert together.shape == (3, 33, 3)
    assert (draw(KEYS[2:], 9, (33, 3)) == together[2:]).all()
    assert not (draw(KEYS[2:], 10, (33, 3)) == together[2:]).all()


@pytest.mark.parametrize("kind", ["normal", "uniform", "permutation"])
def test_steps_drawn_together_are_the_steps_drawn_one_by_one(kind, monkeypatch: pytest.MonkeyPatch):
    """Chunks of four steps of three members, come to in any order, as a resumed training comes to them."""
    monkeypatch.setattr(draws, "NUMBERS", 4 * 3 * 33 * 5 + 1)
    images = draws.Images(load("square"), torch.device("cpu"))
    given = draws.Draws([0, 1, 2], Context({"width": 5}, 64, 33, 100), images)
    keys = batches.streams([0, 1, 2], f"{kind}/noise/0")
    one_by_one = {"normal": batches.normal, "uniform": batches.uniform, "permutation": batches.permutations}[kind]
    for step in (6, 7, 8, 0, 98):
        made = given(Draw("noise", kind, ("width",)), step, step, 0)["noise"]
        assert torch.equal(made, one_by_one(keys, step, (33, 5)))


def test_permutations_shuffle_each_column_by_itself():
    shuffles = batches.permutations(KEYS, 0, (50, 4))
    assert (shuffles.sort(dim=1).values == torch.arange(50)[:, None]).all()
    columns = {tuple(column) for column in shuffles.movedim(1, 2).reshape(-1, 50).tolist()}
    assert len(columns) == 12


def test_streams_differ_by_seed_and_purpose():
    assert len({batches.stream(seed, purpose) for seed in range(100) for purpose in ("a", "b")}) == 200
