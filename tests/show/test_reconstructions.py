import numpy as np

from unbraid.show import plot_reconstructions
from unbraid.show.sheets import GAP


def images(n: int, channels: int = 1) -> np.ndarray:
    return np.arange(n, dtype=float)[:, None, None, None] * np.ones((n, 4, 5, channels)) / n


def test_reconstructions_stand_below_their_images() -> None:
    before, after = images(5), 1 - images(5)
    figure = plot_reconstructions(before, after, columns=3)
    sheets = [np.asarray(ax.images[0].get_array()) for ax in figure.axes]
    assert len(sheets) == 2
    for number in range(5):
        row, column = divmod(number, 3)
        x = column * (5 + GAP)
        assert (sheets[row][:4, x : x + 5, :3] == number / 5).all()
        assert (sheets[row][4 + GAP :, x : x + 5, :3] == 1 - number / 5).all()
    assert (sheets[1][:, 2 * (5 + GAP) :, 3] == 0).all()  # nothing where there is no sixth image
    assert (sheets[0][:4, :5, 3] == 1).all()


def test_colours_stay_and_values_outside_are_cut() -> None:
    coloured = np.zeros((1, 2, 2, 3))
    coloured[..., 1] = 0.5
    sheet = np.asarray(plot_reconstructions(coloured, coloured + 0.8).axes[0].images[0].get_array())
    assert sheet[0, 0].tolist() == [0.0, 0.5, 0.0, 1.0]
    assert sheet[-1, 0].tolist() == [0.8, 1.0, 0.8, 1.0]
