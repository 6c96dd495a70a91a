"""Why does the lasso of DCI prefer PCA to learnt codes here, where the paper has it the other way round?

    unbraid study run evidence/studies/dci-2018-laptop.yaml --out reproduced/dci-2018-laptop
    python evidence/benchmarks/lasso_and_pca.py reproduced/dci-2018-laptop

The codes of one study are scored by lassos that differ in one thing each. The rule, which was written before the study
ran: a difference is a reason where disentanglement of learnt codes less that of PCA rises by it (a 95 % interval over
seeds, paired, above 0), and the reason suffices where the difference is no longer below 0. What is changed:

- nothing, or the metric itself, `dci_lasso`, which divides the rows into other parts;
- noise: codes are drawn from the posterior instead of being its mean (PCA has none: nothing changes);
- scaling: codes are centred, not standardised;
- penalty: a fixed share of the least penalty that leaves no weight, .01, .03, .1 and .3, not that of least error;
- shape: each code may act by a curve, a natural spline of five pieces, and counts by the deviation of its curve;
- circle: azimuth is read as its cosine and sine, and counts by both;
- shape and circle together;
- no azimuth, no pose: factors that are left out;
- pixels: PCA of the images of 64 x 64 pixels instead of 16 x 16.
"""

import argparse
from collections.abc import Callable
from pathlib import Path

import numpy as np
from scipy.stats import t
from sklearn.preprocessing import SplineTransformer

import unbraid
from unbraid.base.types import FloatArray
from unbraid.data import Representation
from unbraid.metrics import dci_lasso
from unbraid.metrics._solvers.lasso import lasso_path
from unbraid.metrics.dci import dci_from_importance

PENALTIES = np.geomspace(1.0, 1e-4, 100)
PIECES = 5


def importance(
    blocks: list[FloatArray], targets: list[FloatArray], share: float | None = None, standard: bool = True
) -> FloatArray:
    """(n_codes, n_factors) deviation of what each code adds to the prediction of each factor, by one lasso per column.

    Args:
        blocks: of each code its columns (n_rows, n_columns).
        targets: of each factor its columns; the deviations of several add up in squares.
        share: of the penalty above which every weight is 0; None: that of least error on a fifth of the rows.
        standard: whether columns have a deviation of 1.
    """
    x, owner = np.hstack(blocks), np.repeat(np.arange(len(blocks)), [each.shape[1] for each in blocks])
    train = np.random.default_rng(0).random(len(x)) < 0.8
    x = x - x[train].mean(axis=0)
    if standard:
        x = x / np.maximum(x[train].std(axis=0), 1e-12)
    y = np.hstack(targets)
    y = (y - y[train].mean(axis=0)) / y[train].std(axis=0)
    gram, moments = x[train].T @ x[train] / train.sum(), x[train].T @ y[train] / train.sum()
    grid = np.abs(moments).max(axis=0)[:, None] * (PENALTIES if share is None else np.array([share]))
    paths = np.stack([lasso_path(gram, *factor)[0] for factor in zip(moments.T.copy(), grid, strict=True)])
    found, first = np.zeros((len(blocks), len(targets))), 0
    for factor, own in enumerate(targets):
        for column in range(first, first + own.shape[1]):
            missed = ((y[~train, column][:, None] - x[~train] @ paths[column].T) ** 2).mean(axis=0)
            weights = paths[column, missed.argmin()]
            for code in range(len(blocks)):
                found[code, factor] += (x[:, owner == code] @ weights[owner == code]).var()
        first += own.shape[1]
    return np.sqrt(found)


def columns(codes: FloatArray) -> list[FloatArray]:
    return [codes[:, [code]] for code in range(codes.shape[1])]


def curves(codes: FloatArray) -> list[FloatArray]:
    """Of each code a natural spline, whose knots are quantiles."""
    made = SplineTransformer(n_knots=PIECES + 1, degree=3, knots="quantile", extrapolation="linear", include_bias=False)
    return [made.fit_transform(each) for each in columns(codes)]


def circle(factors: FloatArray) -> list[FloatArray]:
    """Azimuth, the first factor, as a point on a circle; the others as they are."""
    azimuth = factors[:, 0]
    return [np.stack([np.cos(azimuth), np.sin(azimuth)], axis=1), *columns(factors[:, 1:])]


def disentanglement(importances: FloatArray) -> float:
    return dci_from_importance(importances).disentanglement


Way = Callable[[Representation], float]


def ways() -> dict[str, Way]:
    """What is changed, and the disentanglement then."""

    def of(model: Representation, **changed: object) -> float:
        codes, factors = np.asarray(model.codes, float), np.asarray(model.factors, float)
        return disentanglement(importance(columns(codes), columns(factors), **changed))  # pyright: ignore[reportArgumentType]

    def drawn(model: Representation) -> float:
        codes = np.asarray(model.codes, float)
        if model.log_variances is not None:
            noise = np.random.default_rng(0).standard_normal(codes.shape)
            codes = codes + np.exp(0.5 * np.asarray(model.log_variances, float)) * noise
        return disentanglement(importance(columns(codes), columns(np.asarray(model.factors, float))))

    def shaped(model: Representation, round_: bool) -> float:
        factors = np.asarray(model.factors, float)
        return disentanglement(importance(curves(model.codes), circle(factors) if round_ else columns(factors)))

    def without(model: Representation, first: int) -> float:
        return disentanglement(importance(columns(model.codes), columns(np.asarray(model.factors, float)[:, first:])))

    return {
        "nothing": of,
        "the metric itself": lambda model: dci_lasso(model.codes, model.factors, kinds=model.kinds).disentanglement,
        "noise": drawn,
        "scaling": lambda model: of(model, standard=False),
        **{f"penalty {share:g}": lambda model, share=share: of(model, share=share) for share in (0.01, 0.03, 0.1, 0.3)},
        "shape": lambda model: shaped(model, round_=False),
        "circle": lambda model: disentanglement(importance(columns(model.codes), circle(np.asarray(model.factors)))),
        "shape and circle": lambda model: shaped(model, round_=True),
        "no azimuth": lambda model: without(model, 1),
        "no pose": lambda model: without(model, 2),
    }


def main() -> None:
    """Print disentanglement of PCA and of learnt codes by each lasso, and what the change does."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("study", type=Path)
    study = unbraid.Study.load(parser.parse_args().study)
    (snapshot,) = study.snapshots()
    runs = [run for run in snapshot.runs if run.state == "finished"]
    groups: dict[str, list[Representation]] = {}
    for run in runs:
        groups.setdefault(f"{run.family} {run.setting}", []).append(run.codes())
    (pca,) = next(models for name, models in groups.items() if name.startswith("pca"))
    usual: dict[str, FloatArray] = {}
    for way, scored in ways().items():
        own = scored(pca)
        print(f"\n{way}: PCA {own:.3f}")
        for name, models in groups.items():
            if name.startswith("pca"):
                continue
            ahead = np.array([scored(model) for model in models]) - own
            usual.setdefault(name, ahead)  # the first way changes nothing
            low, high = student(ahead)
            rise, least, most = (ahead - usual[name]).mean(), *student(ahead - usual[name])
            reason = " a reason" + (", and enough" if ahead.mean() >= 0 else "") if least > 0 else ""
            print(
                f"  {name[:70]:70} less PCA {ahead.mean():+.3f} [{low:+.3f}, {high:+.3f}]   "
                f"change {rise:+.3f} [{least:+.3f}, {most:+.3f}]{reason}"
            )
    images, factors = pixels()
    codes = np.linalg.eigh(images @ images.T)[1][:, -pca.codes.shape[1] :]
    print(f"\npixels: PCA of 64 x 64 {dci_lasso(codes, factors, kinds=pca.kinds).disentanglement:.3f}")


def pixels() -> tuple[FloatArray, FloatArray]:
    """4 000 images of 64 x 64 x 3, centred, and their factors."""
    dataset = unbraid.datasets.load("teapot")
    rows = np.random.default_rng(0).choice(len(dataset), 4_000, replace=False)
    images = np.asarray(dataset.images(rows), float).reshape(len(rows), -1) / 255
    return images - images.mean(axis=0), np.asarray(dataset.space.factors(rows), float)


def student(values: FloatArray) -> tuple[float, float]:
    half = t.ppf(0.975, len(values) - 1) * values.std(ddof=1) / np.sqrt(len(values))
    return float(values.mean() - half), float(values.mean() + half)


if __name__ == "__main__":
    main()
