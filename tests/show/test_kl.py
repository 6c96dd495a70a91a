from matplotlib.colors import to_hex

from unbraid.show import plot_kl
from unbraid.show.style import ACCENT, MUTED


def test_bars_fall_and_only_informative_ones_are_blue() -> None:
    ax = plot_kl([0.5, 0.01, 2.0, 0.0101])
    assert [bar.get_width() for bar in ax.patches] == [2.0, 0.5, 0.0101, 0.01]  # pyright: ignore[reportAttributeAccessIssue]
    assert [to_hex(bar.get_facecolor()) for bar in ax.patches] == [ACCENT, ACCENT, ACCENT, MUTED]
    assert [text.get_text() for text in ax.get_yticklabels()] == ["code 2", "code 0", "code 3", "code 1"]
    assert ax.yaxis_inverted()
