"""Show the factors of a dataset.

In each row, one factor goes through its levels while the others stay fixed. Datasets
that unbraid draws need no download.
"""

from unbraid import datasets
from unbraid.show import plot_factors

arrow = datasets.load("arrow")
print(len(arrow), "images,", arrow.space.names)

figure = plot_factors(arrow, columns=8, scale=1)
