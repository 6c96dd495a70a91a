"""Score codes and show which code encodes which factor.

The codes of a β-TCVAE on dSprites, which ship with unbraid. The larger a square, the
more important the code is for the factor.
"""

from unbraid import Representation, score
from unbraid.show import plot_hinton

example = Representation.example()
card = score(example, metrics=["dci_lasso", "mig"])
print(card)

axes = plot_hinton(card["dci_lasso"], column_names=example.names)
figure = axes.figure
