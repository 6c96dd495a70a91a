"""Train a model and show what its codes do.

Principal components of a moving white square: the quickest family, but its codes are
waves and not positions. For better codes, train "beta_vae" for some thousand steps.
"""

import unbraid
from unbraid.runs.run_traversals import traverse
from unbraid.show import plot_traversals

(run,) = unbraid.train(
    "pca", {"name": "square", "positions": 32}, latents=4, out="runs", processes=0
)
found = traverse(run, rows=2, steps=7, shown=14)

figure = plot_traversals(
    found.images, found.originals, found.reconstructions, captions=found.captions
)
