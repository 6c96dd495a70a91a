"""Cyclic factors as circles.

The natural code of two angles is a torus in four dimensions. D_LSBD finds the plane in
which each factor turns, even if the whole space is rotated. Colours show the angle.
"""

import numpy as np

from unbraid.data import FactorSpace
from unbraid.metrics import d_lsbd
from unbraid.show import plot_circles

space = FactorSpace(("angle", "hue"), (24, 24), ("cyclic", "cyclic"))
angles = space.grid() * 2 * np.pi / 24
torus = np.concatenate([np.cos(angles), np.sin(angles)], axis=1)
rng = np.random.default_rng(0)
codes = torus @ np.linalg.qr(rng.standard_normal((4, 4)))[
    0
] + 0.08 * rng.standard_normal(torus.shape)

result = d_lsbd(codes, space.grid(), kinds=space.kinds)
print(f"D_LSBD {result.score:.3f}")

figure = plot_circles(result, names=space.names)[0].figure
