"""What a rotation does to metrics.

Two perfect codes are rotated by an angle. Scores of axis alignment fall, and are what
they were after a quarter turn. The accuracy of a linear classifier stays.
"""

import numpy as np

from unbraid import score
from unbraid.data import FactorSpace
from unbraid.show import plot_curves

space = FactorSpace(("size", "height"), (8, 8), ("ordinal", "ordinal"))
factors = np.tile(space.grid(), (20, 1))
perfect = (factors - factors.mean(axis=0)) / factors.std(axis=0)

degrees = np.arange(0, 91, 9)
scores = {"mig": [], "dci_lasso": [], "snc": [], "linear_accuracy": []}
for angle in np.radians(degrees):
    turn = np.array([[np.cos(angle), -np.sin(angle)], [np.sin(angle), np.cos(angle)]])
    card = score(perfect @ turn, factors, metrics=list(scores))
    for name in scores:
        scores[name].append(card.scored[name].headline)

axes = plot_curves(
    {name: {"step": degrees, "score": values} for name, values in scores.items()}
)[0]
axes.set(xlabel="rotation, degrees", ylim=(0, 1.05), title="")
figure = axes.figure
