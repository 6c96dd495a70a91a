"""LSBD-VAE: a Delta-VAE supervised by the transformations between the images of some groups."""

import math
from typing import Any, cast

import numpy as np
import torch
from torch import Tensor, nn

from unbraid.data import FactorSpace, Series, Space, labelled_pairs, turntables, walks
from unbraid.families.common import GLOROT, always, reconstruction_term
from unbraid.families.delta_vae import (
    CIRCULAR,
    IDENTITIES,
    WALK,
    DeltaVAE,
    bounds,
    build_delta_vae,
    circle_parts,
    decode_delta_vae,
    delta_vae,
    delta_vae_loss,
    encode_delta_vae,
    latent_facts,
    sample,
    to_circle,
)
from unbraid.families.family import (
    Batch,
    Context,
    Draw,
    Family,
    Hyper,
    Hyperparameter,
    Items,
    LossOutput,
    OptimizerStep,
    Settings,
    Supervision,
    Supply,
    choice,
    whole,
)
from unbraid.families.supervision import alternating, by_hyperparameters, cyclic_of, grid_of


def rotate(points: Tensor, turns: Tensor) -> Tensor:
    """rho(g) z: points (..., 2) rotated by `turns` (...) full turns, counter-clockwise."""
    angle = 2 * math.pi * turns
    cosine, sine = angle.cos(), angle.sin()
    x, y = points.unbind(-1)
    return torch.stack([cosine * x - sine * y, sine * x + cosine * y], dim=-1)


def anchor_of(points: Tensor, values: Tensor, turns: Tensor) -> tuple[Tensor, Tensor]:
    """Latents of the first image of each group: the mean of all after each has been turned back, on the circles again.

    Args:
        points: (n_groups, m, n_circles, 2) z_1 ... z_m.
        values: (n_groups, m, n_euclidean), on which the group acts by leaving them alone.
        turns: (n_groups, m, n_circles) of g_1 ... g_m, where x_m = g_m x_1.

    Returns:
        Points (n_groups, 1, n_circles, 2) on circles, and values (n_groups, 1, n_euclidean).
    """
    back = rotate(points, -turns)
    return to_circle(back.mean(1, keepdim=True)), values.mean(1, keepdim=True)


def lsbd_loss(points: Tensor, values: Tensor, turns: Tensor) -> Tensor:
    """Squared distance of turned-back latents from their anchor, mean over a group: (n_groups,).

    0 for latents that turn as their images do. Args as `anchor_of`.

    Reference:
        Tonnaer et al. 2022 (LSBD), eq. 11; summed over circles and lines, as the squared norm of the product of
        spaces is. On a line the mean needs no way back. The authors' code takes the distance of the concatenated
        circles, clipped, which costs nothing for errors of up to 120 degrees on both of two circles, and sums over
        the group: their gamma is m times this one's.
    """
    first_points, first_values = anchor_of(points, values, turns)
    off_circle = (rotate(points, -turns) - first_points).square().sum((-1, -2))
    off_line = (values - first_values).square().sum(-1)
    return (off_circle + off_line).mean(1)


def subgroup_facts(space: Space, settings: Settings) -> dict[str, Any]:
    """A circle for each cyclic factor, in order."""
    turning = cyclic_of(space)
    if settings["circles"] not in (0, len(turning)):
        raise ValueError(
            f"it has {len(turning)} cyclic factors ({', '.join(turning)}), each with a circle of its own; "
            f"got circles {settings['circles']}"
        )
    return {**latent_facts(grid_of(space), settings), "turning": list(turning)}


def make_groups(space: Space, settings: Settings, seed: int) -> Supply:
    """Groups of images with the turn of each from the first; and the images of no group."""
    grid, kind = grid_of(space), settings["supervision"]
    series = _series(grid, settings, seed)
    columns = [grid.column(name) for name in settings["turning"]]
    # By a path an image may come that others come by, too: none is left out for it.
    left = np.arange(len(grid)) if kind == "paths" else np.setdiff1d(np.arange(len(grid)), series.index)
    groups = Items(series.index, {"turns": series.turns[..., columns]})
    return Supply(
        {"groups": groups, "images": Items(left)},
        {kind: len(series.index), "labelled_images": len(np.unique(series.index))},
    )


def _series(space: FactorSpace, settings: Settings, seed: int) -> Series:
    if settings["supervision"] == "pairs":
        with by_hyperparameters(n="pairs"):
            return labelled_pairs(space, settings["pairs"], seed=seed)
    if settings["supervision"] == "paths":
        length, step = settings["path_length"], settings["path_step"]
        with by_hyperparameters(n="paths", length="path_length", step="path_step"):
            return walks(space, settings["paths"], length, step=step, seed=seed)
    turning = settings["turning"]
    if len(turning) > 1:
        raise ValueError(f"a turntable turns one cyclic factor, this has {', '.join(turning)}: take pairs or paths")
    with by_hyperparameters(n="turntables"):
        return turntables(space, turning[0], settings["turntables"] or None, seed=seed)


def group_loss(modules: nn.ModuleDict, batch: Batch, hyper: Hyper, step: Any, context: Context) -> LossOutput:
    """Negative ELBO of groups, decoded from their anchors turned as the images are, plus gamma * L_LSBD.

    Reference:
        Tonnaer et al. 2022 (LSBD), section 5.
    """
    vae = cast(DeltaVAE, modules["vae"])
    images, turns = batch["groups"].flatten(0, 1), batch["groups turns"]
    posterior = vae.encode(images, *bounds(hyper, context))
    drawn = sample(posterior, batch["group walk"].flatten(0, 1), batch["group noise"].flatten(0, 1))
    points, values = (latents.unflatten(0, turns.shape[:2]) for latents in drawn)
    first_points, first_values = anchor_of(points, values, turns)
    turned = rotate(first_points.expand_as(points), turns)
    decoded = vae.decode(turned.flatten(0, 1), first_values.expand_as(values).flatten(0, 1))
    fit = reconstruction_term(decoded, images, hyper, context.settings)
    if context.settings["anchor"] == "locations":
        located = (posterior.location, posterior.mean)
        points, values = (latents.unflatten(0, turns.shape[:2]) for latents in located)
    disorder = lsbd_loss(points, values, turns)
    loss, logs = delta_vae(posterior, fit)
    lsbd = disorder.mean()
    return loss + hyper["gamma"] * lsbd, {**{f"group_{name}": value for name, value in logs.items()}, "lsbd": lsbd}, {}


def passes(context: Context) -> tuple[int, int]:
    """Moves of an epoch: through all groups, then through all images of none."""
    return context.passes["groups"], context.passes["images"]


LSBD_VAE = Family(
    title="LSBD-VAE",
    build=build_delta_vae,
    optimizer_steps=(
        OptimizerStep(
            "groups",
            ("vae",),
            group_loss,
            (
                Draw("groups", "given"),
                Draw("group walk", "normal", WALK, of="groups"),
                Draw("group noise", "normal", ("euclidean",), of="groups"),
            ),
            turn=alternating(passes, 0),
        ),
        OptimizerStep(
            "images",
            ("vae",),
            delta_vae_loss,
            (
                Draw("images", "given"),
                Draw("walk", "normal", WALK, of="images"),
                Draw("noise", "normal", ("euclidean",), of="images"),
            ),
            turn=alternating(passes, 1),
        ),
    ),
    hyperparameters={
        **CIRCULAR,
        "gamma": Hyperparameter(100.0, "weight of L_LSBD, the disorder within groups", 0.0, 1e9),
        "anchor": choice(
            "samples", "where L_LSBD is taken: at samples, or at locations and means", "samples", "locations"
        ),
        "supervision": choice(
            "pairs",
            "groups whose transformations are known: disjoint pairs, objects seen from all around, random walks",
            "pairs",
            "turntables",
            "paths",
        ),
        "pairs": whole(512, "labelled pairs; 0: unsupervised", 0, 1e8),
        "turntables": whole(0, "objects seen from all around; 0: all of them", 0, 1e8),
        "paths": whole(50, "random walks", 1, 1e6),
        "path_length": whole(100, "images of each", 2, 1e6),
        "path_step": whole(3, "levels of each of its steps", 1, 1e6),
    },
    encode=encode_delta_vae,
    decode=decode_delta_vae,
    version=2,  # turns of a cyclic factor whose last level is its first again
    source="Tonnaer et al. 2022, section 5",
    cites=("tonnaer2022quantifying",),
    formula=(
        r"\mathcal{L}_{\Delta\mathrm{VAE}} + \gamma \, \frac{1}{M} \sum_{m=1}^{M} \left\| \rho(g_m)^{-1} z_m - "
        r"\bar{z} \right\|^2, \qquad \bar{z} = \Pi\left( \frac{1}{M} \sum_m \rho(g_m)^{-1} z_m \right)",
        r"The images $x_m = g_m \cdot x_1$ of a group are labelled by their transformations; $\rho(g)$ turns a "
        r"circle by the known angle, $\Pi$ projects back onto it, and the decoder is given $\rho(g_m) \bar{z}$. "
        "Unlabelled images are trained as in `delta_vae`.",
    ),
    diverges_when_stacked=always,
    supervision=Supervision(
        "transformations",
        "a full grid of factors, at least one of them cyclic",
        ("supervision", "pairs", "turntables", "paths"),
        make_groups,
    ),
    facts=subgroup_facts,
    parts=circle_parts,
    presets={
        "lsbd_pairs": tuple({**GLOROT, "pairs": pairs} for pairs in range(0, 2049, 256)),
        "lsbd_paths": ({**GLOROT, "supervision": "paths"},),
        "lsbd_objects": (
            {**GLOROT, "supervision": "turntables", "gamma": 1.0, "euclidean": IDENTITIES, "log_t_high": -5.0},
        ),
    },
    notes=(
        "An epoch is a pass over all groups and one over the images of none (all images, with paths), each with Adam's "
        "moments of its own; a batch has as many groups as hold batch_size images, one at least.",
        "Codes are the locations, cosine and sine for each cyclic factor in order, then the Gaussian means.",
    ),
)
