import numpy as np

from unbraid.show import plot_curves, plot_latents

PNG = b"\x89PNG\r\n\x1a\n"
RNG = np.random.default_rng(0)


def test_a_notebook_shows_several_axes_as_one_figure() -> None:
    curves = plot_curves({"step": np.arange(3), "loss": RNG.random(3), "kl": RNG.random(3)})
    latents = plot_latents(RNG.normal(size=(40, 2)), RNG.integers(0, 3, (40, 2)), kinds=("ordinal", "ordinal"))
    for shown in (curves, latents):
        assert shown._repr_png_().startswith(PNG)  # pyright: ignore[reportAttributeAccessIssue]
