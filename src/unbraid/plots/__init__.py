"""Draw Results: plain functions `plot_<what>(...)` that return matplotlib axes and compute no score."""

from unbraid.plots.against import plot_against
from unbraid.plots.boxes import plot_box_per_setting
from unbraid.plots.circles import plot_circles
from unbraid.plots.contact_sheet import plot_factors
from unbraid.plots.correlations import plot_correlations
from unbraid.plots.curves import plot_curves
from unbraid.plots.hinton import important_first, plot_hinton
from unbraid.plots.images import plot_images
from unbraid.plots.important import plot_important_codes
from unbraid.plots.kl import plot_kl
from unbraid.plots.latents import plot_latents
from unbraid.plots.paper import fit_width
from unbraid.plots.reconstructions import plot_reconstructions
from unbraid.plots.scatter import plot_code_plane, plot_factor_code
from unbraid.plots.similarity import plot_similarity
from unbraid.plots.style import family_marks
from unbraid.plots.symmetry import plot_dispersion, plot_symmetry
from unbraid.plots.theme import save_figure, set_theme
from unbraid.plots.traversals import plot_traversals

__all__ = [
    "family_marks",
    "fit_width",
    "important_first",
    "plot_against",
    "plot_box_per_setting",
    "plot_circles",
    "plot_code_plane",
    "plot_correlations",
    "plot_curves",
    "plot_dispersion",
    "plot_factor_code",
    "plot_factors",
    "plot_hinton",
    "plot_images",
    "plot_important_codes",
    "plot_kl",
    "plot_latents",
    "plot_reconstructions",
    "plot_similarity",
    "plot_symmetry",
    "plot_traversals",
    "save_figure",
    "set_theme",
]
