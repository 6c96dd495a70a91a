"""docs/images/diagnosis.png: what the diagnosis says of six factors of packaged models, beside the codes.

python evidence/make_diagnosis_picture.py
"""

from pathlib import Path

import matplotlib

matplotlib.use("agg")
import matplotlib.pyplot as plt
import numpy as np

import unbraid

OUT = Path(__file__).parents[1] / "docs" / "images" / "diagnosis.png"
# Model, factor, codes of the axes (one: the factor is the other axis), factor that colours.
PANELS = (
    ("sprites/ada_gvae-s0", "position_x", (4,), "shape"),
    ("sprites/ada_gvae-s0", "scale", (7,), "shape"),
    ("shapes3d_rendered/vae-s0", "floor_hue", (8, 9), "floor_hue"),
    ("sprites/vae-s0", "position_x", (2, 8), "position_x"),
    ("cars_rendered/vae-s0", "azimuth", (1, 3), "azimuth"),
    ("shapes3d_rendered/factor_vae-g4-s0", "orientation", (0,), "shape"),
)


def main() -> None:
    figure, axes = plt.subplots(2, 3, figsize=(12, 7.4), layout="constrained")
    for panel, (model, factor, codes, colour) in zip(axes.flat, PANELS, strict=True):
        representation = unbraid.zoo.load(model)
        verdict = unbraid.diagnose(representation).factors[factor]
        columns = dict(zip(representation.names, representation.factors.T, strict=True))
        horizontal = representation.codes[:, codes[0]]
        vertical = representation.codes[:, codes[1]] if len(codes) == 2 else columns[factor]
        cyclic = representation.kinds[representation.names.index(colour)] == "cyclic"
        noise = np.random.default_rng(0).uniform(-0.2, 0.2, len(vertical)) if len(codes) == 1 else 0.0
        panel.scatter(horizontal, vertical + noise, c=columns[colour], s=3, cmap="twilight" if cyclic else "viridis")
        panel.set(xlabel=f"code {codes[0]}", ylabel=f"code {codes[1]}" if len(codes) == 2 else factor)
        where, how, strength = verdict.columns()
        panel.set_title(f"{model}\n{factor}: {where}\n{how}, {strength}", fontsize=10)
        panel.text(0.99, 0.01, f"colour: {colour}", transform=panel.transAxes, ha="right", va="bottom", fontsize=8)
    figure.savefig(OUT, dpi=110)


if __name__ == "__main__":
    main()
