"""What the plots of a study draw: boxes, correlations, similarities, one column against another."""

from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from matplotlib.axes import Axes
from matplotlib.collections import LineCollection, PathCollection
from matplotlib.colors import to_hex

from unbraid.show import plot_against, plot_box_per_setting, plot_correlations, plot_similarity, save_figure
from unbraid.show.style import INK, MARK, MUTED, PALETTE


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


# Boxes


def test_boxes_reach_from_quartile_to_quartile_and_whiskers_to_the_extremes() -> None:
    ax = plot_box_per_setting(SPREAD)
    bounds = [patch.get_bbox() for patch in ax.patches]  # pyright: ignore[reportAttributeAccessIssue]
    assert [(each.y0, each.y1) for each in bounds] == [(0.2, 0.4), (0.2, 0.25), (0.5, 0.5)]
    lines = [each.get_segments() for each in ax.collections if isinstance(each, LineCollection)]
    assert [segment[:, 1].tolist() for segment in lines[0]] == [[0.1, 0.2], [0.4, 0.9]]
    assert lines[1][0][:, 1].tolist() == [0.3, 0.3]
    dots = [each.get_offsets() for each in ax.collections if isinstance(each, PathCollection)]
    assert sorted(np.asarray(dots[0])[:, 1]) == [0.1, 0.2, 0.3, 0.4, 0.9]


def test_families_are_named_above_and_settings_below_without_what_they_share() -> None:
    ax = plot_box_per_setting(SPREAD, name="MIG")
    assert texts(ax) == ["beta_vae\nbeta", "dip_vae_i"]
    assert [tick.get_text() for tick in ax.get_xticklabels()] == ["1", "16", "lambda_od=1, lambda_d=10"]
    assert ax.get_ylabel() == "MIG"
    assert [to_hex(patch.get_facecolor()) for patch in ax.patches] == [PALETTE[0], PALETTE[0], PALETTE[1]]
    assert plot_box_per_setting(SPREAD).get_ylabel() == "mig.score"


def test_no_box_is_refused() -> None:
    with pytest.raises(ValueError, match="mig.score: no setting has a value"):
        plot_box_per_setting(SimpleNamespace(column="mig.score", boxes=[]))


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
    assert np.asarray(plot_correlations(NAMES, VALUES).images[0].get_alpha())[1, 0] == 1
    assert to_hex(plot_correlations(NAMES, VALUES).texts[1].get_color()) == INK


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ((NAMES[:2], VALUES), r"must be \(2, 2\), as there are 2 names; got \(3, 3\)"),
        ((NAMES, VALUES, P[:2]), r"got \(3, 3\) and \(2, 3\)"),
        ((NAMES, 2 * VALUES), "lie between -1 and 1"),
        (([], np.empty((0, 0))), "at least two metrics"),
    ],
)
def test_matrices_that_do_not_fit_are_refused(arguments: tuple, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        plot_correlations(*arguments)


# Similarity


def test_models_are_framed_by_group_and_empty_where_not_compared() -> None:
    pairs = np.full((20, 20), 0.5)
    np.fill_diagonal(pairs, np.nan)
    ax = plot_similarity(pairs, groups=["beta=1"] * 12 + ["beta=4"] * 8)
    alpha = np.asarray(ax.images[0].get_alpha())
    assert alpha.diagonal().tolist() == [0] * 20
    assert alpha.sum() == 380
    assert texts(ax) == ["beta=1", "beta=4"]
    assert {
        float(np.asarray(line.get_xdata())[0]) for line in ax.lines if len(set(np.asarray(line.get_xdata()))) == 1
    } == {11.5}
    assert len(ax.child_axes) == 1  # the key


def test_latents_have_names_and_numbers() -> None:
    ax = plot_similarity([[0.95, 0.1, 0.0], [0.25, 1.0, 0.3]], row_names=["a", "b"], column_names=["x", "y", "z"])
    assert texts(ax) == [".95", ".10", ".00", ".25", "1.00", ".30"]
    assert [tick.get_text() for tick in ax.get_yticklabels()] == ["a", "b"]
    assert [tick.get_text() for tick in ax.get_xticklabels()] == ["x", "y", "z"]
    assert not ax.child_axes


@pytest.mark.parametrize(
    ("matrix", "arguments", "message"),
    [
        ([1.0, 2.0], {}, "a similarity matrix is"),
        (np.empty((0, 3)), {}, "a similarity matrix is"),
        (np.eye(3), {"groups": ["a"]}, "1 names or groups do not fit"),
        (np.ones((2, 3)), {"column_names": ["a", "b"]}, "2 names or groups do not fit"),
    ],
)
def test_anything_but_a_matrix_with_its_names_is_refused(matrix: Any, arguments: dict, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        plot_similarity(matrix, **arguments)


# Against


def test_one_collection_of_dots_per_family_and_rings_around_those_marked() -> None:
    ax = plot_against([1, 2, 3, 4], [4, 3, 2, 1], ["a", "b", "a", "b"], x_name="TC", y_name="MIG", marked=[2])
    first, second, ring = ax.collections
    np.testing.assert_array_equal(np.asarray(first.get_offsets()), [[1, 4], [3, 2]])
    assert to_hex(second.get_facecolor()[0]) == PALETTE[1]
    np.testing.assert_array_equal(np.asarray(ring.get_offsets()), [[3, 2]])
    assert to_hex(ring.get_edgecolor()[0]) == MARK
    assert (ax.get_xlabel(), ax.get_ylabel()) == ("TC", "MIG")
    legend = ax.get_legend()
    assert legend is not None
    assert [text.get_text() for text in legend.get_texts()] == ["a", "b"]
    assert plot_against([1], [1], ["a"]).get_legend() is None


def test_larger_numbers_make_larger_dots() -> None:
    areas = plot_against([1, 2, 3], [1, 2, 3], ["a"] * 3, sizes=[1, 100, 4]).collections[0].get_sizes()  # pyright: ignore[reportAttributeAccessIssue]
    assert areas[0] < areas[2] < areas[1]


@pytest.mark.parametrize(
    ("x", "y", "families", "arguments", "message"),
    [
        ([1, 2], [1], ["a", "b"], {}, "must be of one length"),
        ([], [], [], {}, "must be of one length"),
        ([1, np.nan], [1, 2], ["a", "b"], {}, "must be finite"),
        ([1, 2], [1, 2], ["a", "b"], {"sizes": [1]}, "sizes must be 2 finite numbers"),
    ],
)
def test_columns_that_do_not_fit_are_refused(x: list, y: list, families: list, arguments: dict, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        plot_against(x, y, families, **arguments)


def test_all_can_be_saved_on_a_dark_page(tmp_path: Any) -> None:
    for number, ax in enumerate(
        (plot_box_per_setting(SPREAD), plot_correlations(NAMES, VALUES, P), plot_similarity(np.eye(13)))
    ):
        figure = ax.figure
        assert figure is not None
        save_figure(figure, tmp_path / f"{number}.svg", theme="dark")  # pyright: ignore[reportArgumentType]
        assert (tmp_path / f"{number}.svg").stat().st_size > 1000
