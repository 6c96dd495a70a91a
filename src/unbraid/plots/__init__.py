"""Draw Results: plain functions `plot_<what>(...)` that return matplotlib axes and compute no score."""

from unbraid.plots.contact_sheet import plot_factors
from unbraid.plots.hinton import plot_hinton
from unbraid.plots.latents import plot_latents
from unbraid.plots.scatter import plot_code_plane, plot_factor_code
from unbraid.plots.symmetry import plot_dispersion, plot_symmetry
from unbraid.plots.traversals import plot_traversals

__all__ = [
    "plot_code_plane",
    "plot_dispersion",
    "plot_factor_code",
    "plot_factors",
    "plot_hinton",
    "plot_latents",
    "plot_symmetry",
    "plot_traversals",
]
