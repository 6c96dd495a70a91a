"""Choose among models without labels.

Of six models that explain the data equally well, four agree up to the order and the
signs of their codes, and two are rotations. UDR finds the four without a label; squares
show how well each two models agree.
"""

import numpy as np

from unbraid.metrics import udr
from unbraid.show import plot_hinton

rng = np.random.default_rng(0)
sources = rng.uniform(-1, 1, (2000, 4))


def shuffled():
    return (sources * rng.choice([-1, 1], 4))[
        :, rng.permutation(4)
    ] + 0.1 * rng.standard_normal(sources.shape)


def rotated():
    return sources @ np.linalg.qr(rng.standard_normal((4, 4)))[
        0
    ] + 0.1 * rng.standard_normal(sources.shape)


names = ["model 1", "model 2", "model 3", "model 4", "rotated 1", "rotated 2"]
result = udr([shuffled(), shuffled(), shuffled(), shuffled(), rotated(), rotated()])
for name, value in sorted(
    zip(names, result.scores, strict=True), key=lambda pair: -pair[1]
):
    print(f"{name}: {value:.2f}")

axes = plot_hinton(np.nan_to_num(result.pairs), row_names=names, column_names=names)
figure = axes.figure
