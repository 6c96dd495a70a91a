"""How scores fall with noise.

Perfect codes with more and more noise: MIG and SNC fall at once, while the FactorVAE
score stays at 1.
"""

import numpy as np

from unbraid import score
from unbraid.data import FactorSpace
from unbraid.show import plot_curves

space = FactorSpace(
    ("shape", "size", "height"), (3, 4, 6), ("categorical", "ordinal", "ordinal")
)
factors = np.tile(space.grid(), (30, 1))
perfect = (factors - factors.mean(axis=0)) / factors.std(axis=0)
noise = np.random.default_rng(0).standard_normal(factors.shape)

percent = np.arange(0, 110, 10)
scores = {"mig": [], "snc": [], "factor_vae_score": []}
for level in percent / 100:
    card = score(
        perfect + level * noise, factors, kinds=space.kinds, metrics=list(scores)
    )
    for name in scores:
        scores[name].append(card.scored[name].headline)

curves = {name: {"step": percent, "score": values} for name, values in scores.items()}
axes = plot_curves(curves)[0]
axes.set(xlabel="noise, % of the codes' spread", ylim=(0, 1.05), title="")
figure = axes.figure
