"""Draw Results: plain functions `plot_<what>(...)` that return matplotlib axes and compute no score."""

from unbraid.show.against import plot_against
from unbraid.show.boxes import plot_box_per_setting
from unbraid.show.contact_sheet import plot_factors
from unbraid.show.correlations import plot_correlations
from unbraid.show.curves import plot_curves
from unbraid.show.hinton import important_first, plot_hinton
from unbraid.show.important import plot_important_codes
from unbraid.show.kl import plot_kl
from unbraid.show.latents import plot_latents
from unbraid.show.paper import fit_width
from unbraid.show.scatter import plot_code_plane, plot_factor_code
from unbraid.show.sheets import plot_images, plot_reconstructions
from unbraid.show.similarity import plot_similarity
from unbraid.show.style import family_marks
from unbraid.show.symmetry import plot_circles, plot_dispersion, plot_symmetry
from unbraid.show.theme import save_figure, set_theme
from unbraid.show.traversal_grid import plot_traversals

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
