"""docs/images/diagnosis.png and diagnosis_real.png: what the diagnosis says of some factors, beside the codes.

Of models that ship with unbraid, and of principal and independent components of tables that ship with scikit-learn,
less the columns that are the factors.

python evidence/make_diagnosis_picture.py [real]
"""

import sys
from collections.abc import Callable, Sequence
from pathlib import Path

import matplotlib

matplotlib.use("agg")
import matplotlib.pyplot as plt
import numpy as np
from sklearn import datasets
from sklearn.decomposition import NMF, PCA, FastICA
from sklearn.preprocessing import StandardScaler

import unbraid
from unbraid import Representation

IMAGES = Path(__file__).parents[1] / "docs" / "images"
# Model, factor, codes of the axes (one: the factor is the other axis), factor that colours.
PANELS = (
    ("sprites/ada_gvae-s0", "position_x", (4,), "shape"),
    ("sprites/ada_gvae-s0", "scale", (7,), "shape"),
    ("shapes3d_rendered/vae-s0", "floor_hue", (8, 9), "floor_hue"),
    ("sprites/vae-s0", "position_x", (2, 8), "position_x"),
    ("cars_rendered/vae-s0", "azimuth", (1, 3), "azimuth"),
    ("shapes3d_rendered/factor_vae-g4-s0", "orientation", (0,), "shape"),
)
REAL_PANELS = (
    ("wine, pca", "class", (0, 1), "class"),
    ("iris, pca", "class", (0, 1), "class"),
    ("iris, ica", "class", (0,), "class"),
    ("breast_cancer, pca", "mean radius", (0, 1), "mean radius"),
    ("breast_cancer, pca", "class", (0, 1), "class"),
    ("digits, nmf", "ink", (3,), "class"),
)
HELD_OUT = {
    "wine": ("alcohol", "color_intensity", "ash"),
    "iris": ("petal width (cm)", "sepal width (cm)"),
    "breast_cancer": ("mean radius", "mean smoothness", "mean texture"),
    "digits": ("pixel_2_4", "pixel_4_4"),
    "diabetes": ("age", "sex", "bmi", "s6"),
}


def real(name: str) -> Representation:
    """Up to ten components of a table, and what was held out of it as factors."""
    table, method = name.split(", ")
    data = getattr(datasets, f"load_{table}")()
    names, held_out = list(data.feature_names), HELD_OUT[table]
    places = [names.index(column) for column in held_out]
    rest = np.delete(data.data, places, axis=1)
    rest = rest if table == "digits" else StandardScaler().fit_transform(rest)
    n_codes = 10 if table == "digits" else min(6, rest.shape[1])
    tool = {
        "pca": PCA(n_codes, random_state=0), "ica": FastICA(n_codes, random_state=0, max_iter=1000),
        "nmf": NMF(n_codes, init="nndsvda", random_state=0, max_iter=500),
    }[method]  # fmt: skip
    factors = {("progression" if table == "diabetes" else "class"): data.target}
    factors |= {column: data.data[:, place] for column, place in zip(held_out, places, strict=True)}
    if table == "digits":
        factors["ink"] = data.data.sum(axis=1)
    kinds = ["categorical" if column in ("class", "sex") else "continuous" for column in factors]
    values = np.column_stack([np.unique(each, return_inverse=True)[1] if kind == "categorical" else each
                              for each, kind in zip(factors.values(), kinds, strict=True)])  # fmt: skip
    return Representation.of(tool.fit_transform(rest), values, names=list(factors), kinds=kinds)


def draw(
    panels: Sequence[tuple[str, str, tuple[int, ...], str]], load: Callable[[str], Representation], out: Path
) -> None:
    figure, axes = plt.subplots(2, 3, figsize=(12, 7.4), layout="constrained")
    for panel, (model, factor, codes, colour) in zip(axes.flat, panels, strict=True):
        representation = load(model)
        verdict = unbraid.diagnose(representation).factors[factor]
        columns = dict(zip(representation.names, representation.factors.T, strict=True))
        kinds = dict(zip(representation.names, representation.kinds, strict=True))
        horizontal = representation.codes[:, codes[0]]
        vertical = representation.codes[:, codes[1]] if len(codes) == 2 else columns[factor]
        steps = len(codes) == 1 and kinds[factor] != "continuous"
        noise = np.random.default_rng(0).uniform(-0.2, 0.2, len(vertical)) if steps else 0.0
        palette = "twilight" if kinds[colour] == "cyclic" else "viridis"
        size = 3 if len(vertical) > 2_000 else 8
        panel.scatter(horizontal, vertical + noise, c=columns[colour], s=size, cmap=palette)
        panel.set(xlabel=f"code {codes[0]}", ylabel=f"code {codes[1]}" if len(codes) == 2 else factor)
        where, how, strength = verdict.columns()
        panel.set_title(f"{model}\n{factor}: {where}\n{how}\n{strength}", fontsize=9)
        panel.text(0.99, 0.01, f"colour: {colour}", transform=panel.transAxes, ha="right", va="bottom", fontsize=8)
    figure.savefig(out, dpi=110)


def main() -> None:
    draw(REAL_PANELS, real, IMAGES / "diagnosis_real.png")
    for table in HELD_OUT:
        print(table, unbraid.diagnose(real(f"{table}, pca")), "", sep="\n")
    if "real" not in sys.argv[1:]:
        draw(PANELS, unbraid.zoo.load, IMAGES / "diagnosis.png")


if __name__ == "__main__":
    main()
