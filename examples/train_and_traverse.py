"""Train a model and see what its codes do.

Principal components of the white square, the quickest of all families: waves, not
positions. Write "beta_vae" and some thousand steps in place of "pca" for codes that
know better.
"""

import unbraid
from unbraid.plots import plot_traversals
from unbraid.runs.traversals import traverse

(run,) = unbraid.train(
    "pca", {"name": "square", "positions": 32}, latents=4, out="runs", processes=0
)
found = traverse(run, rows=2, steps=7, shown=14)

figure = plot_traversals(
    found.images, found.originals, found.reconstructions, captions=found.captions
)
