"""What the plots of a study draw: boxes, correlations, similarities, one column against another."""

from types import SimpleNamespace

import numpy as np
from matplotlib.axes import Axes
from matplotlib.collections import LineCollection, PathCollection
from matplotlib.colors import to_hex

from unbraid.show import plot_box_per_setting, plot_correlations
from unbraid.show.style import INK, MUTED


def box(family: str, setting: str, values: list[float]) -> SimpleNamespace:
    five = dict(
        zip(
            ("lowest", "lower_quartile", "median", "upper_quartile", "highest"),
            np.percentile(values, (0, 25, 50, 75, 100)),
            strict=True,
        )
    )
    return SimpleNamespace(family=family, setting=setting, values=np.array(values), **five)


SPREAD = SimpleNamespace(
    column="mig.score",
    boxes=[
        box("beta_vae", "beta=1", [0.1, 0.2, 0.3, 0.4, 0.9]),
        box("beta_vae", "beta=16", [0.2, 0.2, 0.3]),
        box("dip_vae_i", "lambda_od=1, lambda_d=10", [0.5]),
    ],
)


def texts(ax: Axes) -> list[str]:
    return [text.get_text() for text in ax.texts]


def test_boxes_reach_from_quartile_to_quartile_and_whiskers_to_the_extremes() -> None:
    ax = plot_box_per_setting(SPREAD)
    bounds = [patch.get_bbox() for patch in ax.patches]  # pyright: ignore[reportAttributeAccessIssue]
    assert [(each.y0, each.y1) for each in bounds] == [(0.2, 0.4), (0.2, 0.25), (0.5, 0.5)]
    lines = [each.get_segments() for each in ax.collections if isinstance(each, LineCollection)]
    assert [segment[:, 1].tolist() for segment in lines[0]] == [[0.1, 0.2], [0.4, 0.9]]
    assert lines[1][0][:, 1].tolist() == [0.3, 0.3]
    dots = [each.get_offsets() for each in ax.collections if isinstance(each, PathCollection)]
    assert sorted(np.asarray(dots[0])[:, 1]) == [0.1, 0.2, 0.3, 0.4, 0.9]


# Correlations

NAMES = ["mig", "dci", "udr"]
VALUES = np.array([[1, 0.9, -0.5], [0.9, 1, np.nan], [-0.5, np.nan, 1]])
P = np.array([[0, 0.001, 0.3], [0.001, 0, np.nan], [0.3, np.nan, 0]])


def test_each_pair_is_one_cell_and_what_chance_may_have_made_is_faded() -> None:
    ax = plot_correlations(NAMES, VALUES, P)
    image = ax.images[0]
    shown = np.asarray(image.get_array())
    assert (shown[0, 0], shown[1, 0]) == (0.9, -0.5)
    alpha = np.asarray(image.get_alpha())
    assert alpha[0, 0] == 1
    assert 0 < alpha[1, 0] < 1
    assert alpha[0, 1] == alpha[1, 1] == 0  # above the diagonal, and not known
    assert texts(ax) == [".90", "−.50", "–"]
    assert [to_hex(text.get_color()) for text in ax.texts][1] == MUTED
    assert [tick.get_text() for tick in ax.get_yticklabels()] == ["dci", "udr"]
    assert [tick.get_text() for tick in ax.get_xticklabels()] == ["mig", "dci"]


def test_a_larger_alpha_fades_less_and_no_p_fades_nothing() -> None:
    assert np.asarray(plot_correlations(NAMES, VALUES, P, alpha=0.5).images[0].get_alpha())[1, 0] == 1
    for p, is_sure in ((0.0501, False), (0.05, True)):
        drawn = plot_correlations(NAMES, VALUES, np.full((3, 3), p)).images[0]
        assert (np.asarray(drawn.get_alpha())[1, 0] == 1) == is_sure
    assert np.asarray(plot_correlations(NAMES, VALUES).images[0].get_alpha())[1, 0] == 1
    assert to_hex(plot_correlations(NAMES, VALUES).texts[1].get_color()) == INK
