"""See what the factors of a dataset do.

One row per factor, which goes through its levels while the others stay. Sets that this
package draws need no download.
"""

from unbraid import datasets
from unbraid.plots import plot_factors

arrow = datasets.load("arrow")
print(len(arrow), "images,", arrow.space.names)

figure = plot_factors(arrow, columns=8, scale=1)
