"""One airplane, its hue and its rotation: a rendered substitute for the Airplane set of the LSBD paper."""

from pathlib import Path

import numpy as np

from unbraid.data import FactorSpace
from unbraid.data.image_dataset import ReadingProgress
from unbraid.datasets.airplanes import ELEVATION, airplane_mesh
from unbraid.datasets.arrow import hue_circle
from unbraid.datasets.rendering.raster import orbit, render
from unbraid.datasets.rendering.renderer import MILD, SAMPLES, Composed

TURNS = tuple(k / 64 for k in range(64))
SPACE = FactorSpace(("hue", "rotation"), (64, 64), ("cyclic", "cyclic"), (TURNS, TURNS))
TRIM = (0.85, 0.85, 0.85)
NUMBER = 5  # of the airplanes of seed 0


def open_airplane(root: Path, *, progress: ReadingProgress | None = None) -> Composed:
    """An airplane that turns around the vertical axis and changes its hue, both in 64 cyclic steps.

    Drawn by this package with the factors of the LSBD paper's Airplane, never its official images. Factors: hue
    (k / 64 of the circle of hues, full saturation; the trim stays grey) and rotation (k / 64 of a turn).
    Nothing is stored: 64 views are drawn when the set is opened, and images are mixed from them.

    Args:
        root: unused.
        progress: unused.
    """
    views = orbit(np.arange(64) / 64, ELEVATION / 360)
    layers = render(airplane_mesh(0, NUMBER), views, scene=MILD, samples=SAMPLES)
    return Composed(SPACE, layers, (hue_circle(64) / 255, np.array([TRIM])))
