"""Each factor against the codes that matter most to it (DCI fig. 5)."""

from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np
from matplotlib.axes import Axes

from unbraid.base.types import ArrayLike, FloatArray, Kind
from unbraid.show.hinton import matrix_of
from unbraid.show.paper import across
from unbraid.show.scatter import plot_factor_code
from unbraid.show.style import FONT_SIZE, INK, MUTED, label, new_panels

PANEL = (1.9, 1.35)  # inches
ACROSS = 3
LEFT = 0.72  # inches
OF_CYCLIC = 3  # codes of a cyclic factor, which no single code can hold


def plot_important_codes(
    result: ArrayLike | Any,
    codes: ArrayLike,
    factors: ArrayLike,
    *,
    kinds: Sequence[Kind],
    sizes: Sequence[int] | None = None,
    factor_names: Sequence[str] | None = None,
    levels: Sequence[Sequence[str]] = (),
    code_names: Sequence[str] | None = None,
    greyed: Iterable[int] = (),
    angles: Iterable[int] = (),
    periods: Sequence[float] = (),
    max_points: int = 5_000,
    width: float | None = None,
) -> list[Axes]:
    """Each factor against its most important code, with mean and 10th to 90th percentile; a cyclic one against three.

    Args:
        result: (n_codes, n_factors), or a Result with `importance` or else `mutual_information`.
        codes: (n_samples, n_codes).
        factors: (n_samples, n_factors).
        kinds: kind of each factor.
        sizes: number of levels of each factor; a cyclic one is coloured by its angle.
        factor_names: default "factor 0", ...
        levels: names of the levels of each factor, of level 0 first; by default their numbers.
        code_names: default "code 0", ...
        greyed: codes drawn in grey, such as dead ones.
        angles: factors that have three codes as cyclic ones do, such as an azimuth of kind "continuous".
        periods: of each cyclic factor in radians: once around in the unit of its axis, such as 360; 0: radians.
        max_points: dots drawn in a panel.
        width: of the whole figure in mm, such as 89 or 183; by default three panels in a row.

    Returns:
        The axes in the order of factors; see `most_important_codes`. A factor to which no code matters has an empty
        panel that says so.

    Raises:
        ValueError: the matrix does not fit codes and factors.

    Reference:
        Eastwood & Williams 2018 (DCI), figure 5.
    """
    matrix = np.abs(matrix_of(result))
    code_matrix, factor_matrix = np.asarray(codes, dtype=float), np.asarray(factors, dtype=float)
    if matrix.shape != (code_matrix.shape[1], factor_matrix.shape[1]):
        raise ValueError(
            f"the matrix is {matrix.shape}; codes and factors are {code_matrix.shape} and {factor_matrix.shape}"
        )
    names = list(factor_names or (f"factor {k}" for k in range(matrix.shape[1])))
    grey = set(greyed)
    heads = list(code_names or (f"code {code}" for code in range(len(matrix))))
    pairs = most_important_codes(matrix, kinds, angles)
    n_across, wide = across(width, len(pairs), ACROSS, PANEL[0], LEFT)
    panels = new_panels(len(pairs), n_across, (wide, PANEL[1]), left=LEFT, below=0.35)
    for ax, (k, best) in zip(panels, pairs, strict=True):
        ax.set_title(names[k], fontsize=FONT_SIZE, color=INK, loc="left", pad=5, parse_math=False)
        if matrix[best, k] == 0:
            ax.set_axis_off()
            ax.text(0.5, 0.5, "no code matters", ha="center", va="center", color=MUTED, fontsize=FONT_SIZE)
            continue
        plot_factor_code(
            code_matrix[:, best], factor_matrix[:, k], kind=kinds[k], size=sizes[k] if sizes else None,
            levels=levels[k] if levels else (), period=periods[k] if periods else 0.0, greyed=best in grey,
            max_points=max_points, ax=ax,
        )  # fmt: skip
        label(ax, "", heads[best])
    return panels


def most_important_codes(
    matrix: FloatArray, kinds: Sequence[Kind], angles: Iterable[int] = ()
) -> list[tuple[int, int]]:
    """Pairs of a factor and a code, in the order of factors: the most important code, of a cyclic factor up to three.

    Args:
        matrix: (n_codes, n_factors) importance; its sign does not count.
        kinds: kind of each factor.
        angles: factors that have up to three codes as well.
    """
    pairs, angles = [], set(angles)
    for factor, kind in enumerate(kinds):
        order = np.argsort(-np.abs(matrix[:, factor]), kind="stable")
        codes = [
            code
            for code in order[: OF_CYCLIC if kind == "cyclic" or factor in angles else 1]
            if matrix[code, factor] != 0
        ]
        pairs += [(factor, int(code)) for code in codes or order[:1]]
    return pairs
