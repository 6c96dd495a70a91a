import numpy as np

from unbraid.show import plot_curves

STEPS = np.array([10, 20, 30])
CURVES = {"step": STEPS, "loss/vae": STEPS / 3.0, "kl": STEPS * 2.0}


def test_one_panel_per_quantity_with_its_points() -> None:
    panels = plot_curves(CURVES)
    assert [ax.get_title(loc="left") for ax in panels] == ["loss/vae", "kl"]
    np.testing.assert_allclose(panels[1].lines[0].get_xydata(), np.stack([STEPS, 2.0 * STEPS], axis=1))
    assert panels[0].get_legend() is None


def test_several_runs_are_lines_of_their_own_and_named() -> None:
    panels = plot_curves({"seed 0": CURVES, "seed 1": {"step": STEPS, "kl": STEPS * 0.0}}, names=["kl", "loss/vae"])
    assert [len(ax.lines) for ax in panels] == [2, 1]
    assert [text.get_text() for text in panels[0].get_legend().get_texts()] == ["seed 0", "seed 1"]
    colours = [line.get_color() for line in panels[0].lines]
    assert colours[0] != colours[1]
