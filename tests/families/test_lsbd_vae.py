"""LSBD-VAE: steps on groups and on images of none, against Tonnaer et al. 2022, section 5 and eq. 11."""

import math

import numpy as np
import pytest
import torch
from torch import Tensor

from tests.families import test_delta_vae
from tests.families.circles import SETTINGS, Image, turned, unit
from tests.families.members import SPACE, Move, Weights, play
from tests.families.plain import Mover, Terms, bernoulli, check, decoder, levels, mean_of, position
from unbraid.data import FactorSpace, labelled_pairs, turntables, walks
from unbraid.families.lsbd_vae import anchor_of, lsbd_loss, rotate
from unbraid.metrics.d_lsbd import d_lsbd

GAMMA = 7.0


TURNTABLES = FactorSpace(("object", "angle"), (12, 5), ("categorical", "cyclic"))  # of the same 60 images


def turns_of(image: Tensor, n_circles: int) -> list[float]:
    """How far each cyclic factor is from its first level, in full turns."""
    if n_circles == 1:
        return [position(image) % 5 / 5]
    return [levels(image)[c] / SPACE.sizes[c] for c in range(2)]


def loss_of_groups(weights: Weights, move: Move, anchor: str) -> tuple[Tensor, Terms]:
    """The labels are taken from the factors of the images: x_m = g_m x_1, each circle for one cyclic factor."""
    fits, circles, lines, disorders = [], [], [], []
    for images, steps, noises in zip(*(move.batch[f"group{s}"] for s in ("s", " walk", " noise")), strict=True):
        seen = [Image(weights, *given) for given in zip(images, steps, noises, strict=True)]
        angles = [turns_of(image, len(seen[0].points)) for image in images]
        turns = [[one - first for one, first in zip(each, angles[0], strict=True)] for each in angles]
        m, n = len(images), len(angles[0])

        def towards_the_first(points: list[list[Tensor]], turns: list[list[float]]) -> list[list[Tensor]]:
            pairs = zip(points, turns, strict=True)
            return [[turned(p, -t) for p, t in zip(*each, strict=True)] for each in pairs]

        def centre(back: list[list[Tensor]]) -> list[Tensor]:
            return [unit(torch.stack(points).sum(0) / len(points)) for points in zip(*back, strict=True)]

        back = towards_the_first([each.points for each in seen], turns)
        anchors, values = centre(back), torch.stack([each.values for each in seen]).sum(0) / m
        for i in range(m):
            codes = torch.cat([*(turned(anchors[c], turns[i][c]) for c in range(n)), values])
            fits.append(bernoulli(decoder(weights, "vae.decoder", codes), images[i]))
            circles.append(seen[i].kl_circles)
            lines.append(seen[i].kl_lines)
        own = [each.values for each in seen]
        if anchor == "locations":
            back = towards_the_first([each.locations for each in seen], turns)
            anchors, own = centre(back), [each.mean for each in seen]
            values = torch.stack(own).sum(0) / m
        off = [((back[i][c] - anchors[c]) ** 2).sum() for i in range(m) for c in range(n)]
        off += [((own[i] - values) ** 2).sum() for i in range(m)]
        disorders.append(sum(off, torch.zeros(()).double()) / m)
    fit, on_circles, on_lines, disorder = (mean_of(each) for each in (fits, circles, lines, disorders))
    kl = on_circles + on_lines
    terms = {"reconstruction": fit, "kl": kl, "kl_circles": on_circles, "kl_euclidean": on_lines}
    return fit + kl + GAMMA * disorder, {**{f"group_{name}": term for name, term in terms.items()}, "lsbd": disorder}


@pytest.mark.parametrize("anchor", ["samples", "locations"])
def test_an_epoch_goes_through_all_groups_and_then_through_the_other_images(anchor: str) -> None:
    """10 pairs in batches of 8 images are 3 moves, the other 40 images 5; each has moments of its own."""
    played = play("lsbd_vae", 10, batch_size=8, pairs=10, gamma=GAMMA, anchor=anchor, **SETTINGS)
    movers = {
        "groups": Mover(lambda weights, move: loss_of_groups(weights, move, anchor), ("vae.",), 1e-3),
        "images": Mover(test_delta_vae.loss, ("vae.",), 1e-3),
    }
    check(played, movers, ["groups"] * 3 + ["images"] * 5 + ["groups"] * 2)
    paired = [position(image) for move in played.moves[:3] for pair in move.batch["groups"] for image in pair]
    alone = [position(image) for move in played.moves[3:8] for image in move.batch["images"]]
    assert len(set(paired)) == 20  # 12 places in three batches: two pairs come again
    assert sorted({*paired, *alone}) == list(range(60))
    assert not {*paired} & {*alone}


def test_a_step_of_paths_of_which_each_image_is_some_turns_from_the_first() -> None:
    played = play(
        "lsbd_vae", 1, batch_size=8, supervision="paths", paths=6, path_length=4, path_step=1, gamma=GAMMA, **SETTINGS
    )
    check(played, {"groups": Mover(lambda weights, move: loss_of_groups(weights, move, "samples"), ("vae.",), 1e-3),
                   "images": Mover(test_delta_vae.loss, ("vae.",), 1e-3)}, ["groups"])  # fmt: skip
    images = played.moves[0].batch["groups"]
    assert images.shape[:2] == (2, 4)
    for path in images:
        for one, other in zip(path, path[1:], strict=False):
            steps = [(b - a) % size for a, b, size in zip(levels(one), levels(other), SPACE.sizes, strict=True)]
            assert sorted(min(step, size - step) for step, size in zip(steps, SPACE.sizes, strict=True)) == [0, 0, 1]


def test_turntables_are_whole_objects_and_their_batches_single_ones() -> None:
    """Three objects of five images each; with one circle and two lines, and a batch of four images at least one."""
    played = play("lsbd_vae", 5, space=TURNTABLES, supervision="turntables", turntables=3, gamma=GAMMA, **SETTINGS)
    movers = {
        "groups": Mover(lambda weights, move: loss_of_groups(weights, move, "samples"), ("vae.",), 1e-3),
        "images": Mover(test_delta_vae.loss, ("vae.",), 1e-3),
    }
    check(played, movers, ["groups"] * 3 + ["images"] * 2)
    for move in played.moves[:3]:
        (table,) = move.batch["groups"]
        assert [position(image) % 5 for image in table] == [0, 1, 2, 3, 4]
        assert len({position(image) // 5 for image in table}) == 1


TURNING = FactorSpace(("y", "shape", "x"), (12, 3, 8), ("cyclic", "categorical", "cyclic"))
ANGLES = torch.rand(6, generator=torch.Generator().manual_seed(0), dtype=torch.float64)
NO_LINES = torch.zeros(1, 1, 0, dtype=torch.float64)


def on_circles(turns: Tensor) -> Tensor:
    return torch.stack([(2 * math.pi * turns).cos(), (2 * math.pi * turns).sin()], dim=-1)


def equivariant(levels: np.ndarray) -> tuple[Tensor, Tensor]:
    """Latents of images at these levels: two circles that turn with y and x, and two lines that hold the shape."""
    turns = torch.from_numpy(levels[..., [0, 2]] / np.array([12, 8]))
    shape = torch.from_numpy(levels[..., [1]].astype(float))
    return on_circles(turns + torch.tensor([0.3, 0.8])), torch.cat([shape, 1 - shape], dim=-1)


def test_rho_is_a_homomorphism_into_the_rotations() -> None:
    """rho(g h) = rho(g) rho(h), rho(e) = 1, and lengths, angles and orientation stay."""
    basis = torch.eye(2, dtype=torch.float64)
    matrices = torch.stack([rotate(basis, angle.expand(2)).T for angle in ANGLES])
    torch.testing.assert_close(matrices.mT @ matrices, torch.eye(2, dtype=torch.float64).expand(6, 2, 2))
    torch.testing.assert_close(torch.linalg.det(matrices), torch.ones(6, dtype=torch.float64))
    for g, one in zip(ANGLES, matrices, strict=True):
        for h, other in zip(ANGLES, matrices, strict=True):
            torch.testing.assert_close(one @ other, rotate(basis, (g + h).expand(2)).T)
    torch.testing.assert_close(rotate(basis, torch.ones(2, dtype=torch.float64)), basis)
    torch.testing.assert_close(
        rotate(basis, torch.full((2,), 0.25).double()), torch.tensor([[0.0, 1], [-1, 0]]).double()
    )


@pytest.mark.parametrize("series", [
    labelled_pairs(TURNING, 40, seed=1), walks(TURNING, 5, 9, seed=2), turntables(TURNING, "x", seed=3),
], ids=["pairs", "walks", "turntables"])  # fmt: skip
def test_latents_that_turn_as_their_images_cost_nothing(series) -> None:
    points, values = equivariant(TURNING.factors(series.index))
    turns = torch.from_numpy(series.turns[..., [0, 2]])
    assert float(lsbd_loss(points, values, turns).abs().max()) < 1e-25
    anchor, _ = anchor_of(points, values, turns)
    torch.testing.assert_close(anchor, points[:, :1])  # g_1 = e
    torch.testing.assert_close(rotate(anchor.expand_as(points), turns), points)
    assert float(lsbd_loss(points, values, -turns).mean()) > 0.05


def test_it_is_the_dispersion_that_d_lsbd_measures() -> None:
    """One circle, 64 views whose angle is off by up to 0.5 rad, the same half a turn later so that their mean is 0.

    With R the length of the mean, eq. 11 is 2 (1 - R), since the mean is put back onto the circle; eq. 10 keeps it
    inside and is 1 - R^2.
    """
    level = np.arange(64)
    off = 0.5 * np.random.default_rng(0).uniform(-1, 1, 32)
    angle = 2 * np.pi * level / 64 + np.tile(off, 2)
    codes = np.stack([np.cos(angle), np.sin(angle)], axis=1)
    measured = d_lsbd(codes, level[:, None], kinds=("cyclic",)).score
    loss = float(lsbd_loss(torch.from_numpy(codes)[None, :, None], NO_LINES.expand(1, 64, 0),
                           torch.from_numpy(level / 64)[None, :, None]))  # fmt: skip
    assert measured == pytest.approx(1 - (1 - loss / 2) ** 2, rel=1e-12)
    assert 0.05 < measured < 0.5


def test_opposite_images_are_no_fault() -> None:
    points = on_circles(torch.tensor([[[0.0], [0.5]]], dtype=torch.float64)).requires_grad_()
    loss = lsbd_loss(points, NO_LINES.expand(1, 2, 0), torch.zeros(1, 2, 1, dtype=torch.float64))
    (gradient,) = torch.autograd.grad(loss.sum(), points)
    assert torch.isfinite(loss).all()
    assert torch.isfinite(gradient).all()
