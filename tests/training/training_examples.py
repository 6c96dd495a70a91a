"""Small images and members for the tests of training."""

import numpy as np

from unbraid.data import FactorSpace
from unbraid.data.image_dataset import ArrayDataset
from unbraid.families.building import Member
from unbraid.families.family_table import FAMILIES

SPACE = FactorSpace(("position_x", "position_y", "shade"), (9, 9, 3), ("cyclic", "cyclic", "ordinal"))


def blocks(side: int = 32, channels: int = 1) -> ArrayDataset:
    """A grey block on black at 9 x 9 places in 3 shades: 243 images."""
    images = np.zeros((len(SPACE), side, side, channels), dtype=np.uint8)
    for number, (x, y, shade) in enumerate(SPACE.factors(np.arange(len(SPACE)))):
        images[number, 2 * y : 2 * y + 12, 2 * x : 2 * x + 12] = 85 * (shade + 1)
    return ArrayDataset(images, SPACE)


TINY = ArrayDataset(np.ascontiguousarray(blocks().array[:, ::4, ::4]), SPACE)  # 8 x 8, for dense networks

# FactorVAE's discriminator has five million weights; 243 images have no 512 disjoint pairs.
SMALL: dict[str, dict[str, float | int | str]] = {
    "factor_vae": {"discriminator_width": 64, "discriminator_depth": 2},
    "ada_gvae": {"pairs": 30},
    "ada_ml_vae": {"pairs": 30},
    "lsbd_vae": {"pairs": 20},
    "quessard": {"trajectories": 30, "trajectory_length": 2, "trajectories_at_once": 3},
    "forward_vae": {"transitions": 60},
    "weak_de": {"labels": 81, "adversary_width": 16, "adversary_depth": 2},
    "parted_vae": {"classes": "shade", "labels": 30, "features": 16},
}


def member(family: str, seed: int = 0, **hyperparameters: float | int | str) -> Member:
    """The family's defaults but for what is given, and for what is in SMALL."""
    defaults = {name: each.default for name, each in FAMILIES[family].hyperparameters.items()}
    return Member(seed, {**defaults, **SMALL.get(family, {}), **hyperparameters})
