"""What the runs of each setting make of a metric: quartiles for box plots, and means against means."""

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np

from unbraid.base.natural_order import natural
from unbraid.base.types import BoolArray, DataFrame, FloatArray
from unbraid.scoring.correlation import Method, correlation
from unbraid.scoring.result_columns import check_alike, check_columns, headline_columns, numbers, why_not

__all__ = ["Box", "FamilyCorrelation", "SettingMean", "Quartiles", "Trend", "setting_means", "quartiles", "trend"]


@dataclass(frozen=True, eq=False)
class Box:
    """One setting: the five numbers of a box plot, and what they are of."""

    family: str
    setting: str
    n: int
    lowest: float
    lower_quartile: float
    median: float
    upper_quartile: float
    highest: float
    mean: float
    values: FloatArray  # (n,) of the runs


@dataclass(frozen=True, eq=False)
class Quartiles:
    """A column of results by setting (UDR fig. 2-3)."""

    column: str
    boxes: tuple[Box, ...]
    left_out: dict[str, str]  # "family setting" -> reason

    def to_frame(self) -> DataFrame:
        """A pandas DataFrame, one row per setting, without the single values."""
        import pandas

        names = [name for name in Box.__annotations__ if name != "values"]
        return pandas.DataFrame([{name: getattr(box, name) for name in names} for box in self.boxes], columns=names)

    def to_dict(self) -> dict[str, Any]:
        boxes = self.to_frame().to_dict("records")
        return {"column": self.column, "boxes": boxes, "left_out": self.left_out}


def quartiles(frame: DataFrame, column: str) -> Quartiles:
    """Quartiles of a column over the runs of each setting, interpolated as NumPy and pandas do.

    Args:
        frame: the results of a study: family, setting and the column.
        column: such as mig.score.

    Returns:
        Quartiles, in the order of families and settings. Runs without a value do not count; a setting without any is
        left out with the reason.

    Raises:
        ValueError: the column is unknown or does not hold numbers; or the runs of a setting differ in more than their
            seed.
    """
    values = numbers(frame, column)
    check_alike(frame, [column], ["family", "setting"])
    boxes, left_out = [], {}
    for (family, setting), rows in _settings(frame).items():
        own = values[rows][np.isfinite(values[rows])]
        if len(own) == 0:
            left_out[f"{family} {setting}".strip()] = f"none of its {int(rows.sum())} runs has a value"
            continue
        low, lower, middle, upper, high = np.percentile(own, (0, 25, 50, 75, 100)).tolist()
        boxes.append(Box(family, setting, len(own), low, lower, middle, upper, high, float(own.mean()), own))
    return Quartiles(column, tuple(boxes), left_out)


@dataclass(frozen=True)
class SettingMean:
    family: str
    setting: str
    n: int  # runs that have both
    x: float
    y: float


@dataclass(frozen=True)
class FamilyCorrelation:
    family: str
    value: float
    p: float
    n: int  # settings


@dataclass(frozen=True)
class Trend:
    """Two columns against each other, averaged per setting (β-TCVAE fig. 1 and 3)."""

    x: str
    y: str
    means: tuple[SettingMean, ...]
    correlations: tuple[FamilyCorrelation, ...]  # over the settings of each family
    left_out: dict[str, str]  # family, or "family setting" -> reason

    def to_dict(self) -> dict[str, Any]:
        return asdict(self)


def trend(frame: DataFrame, x: str, y: str, *, method: Method = "pearson") -> Trend:
    """Mean of two columns per setting, and their correlation over the settings of each family.

    Args:
        frame: the results of a study.
        x: such as elbo_terms.total_correlation, or the "elbo" that `with_elbo` adds.
        y: such as mig.score.
        method: of the correlation; the paper's -0.95 of average TC and average MIG is Pearson's.

    Raises:
        ValueError: as `quartiles`.

    Reference:
        Chen et al. 2018 (β-TCVAE), figures 1 and 3.
    """
    first, second = numbers(frame, x), numbers(frame, y)
    check_alike(frame, [x, y], ["family", "setting"])
    means, left_out = [], {}
    for (family, setting), rows in _settings(frame).items():
        both = rows & np.isfinite(first) & np.isfinite(second)
        if not both.any():
            left_out[f"{family} {setting}".strip()] = "none of its runs has both values"
            continue
        means.append(
            SettingMean(family, setting, int(both.sum()), float(first[both].mean()), float(second[both].mean()))
        )
    correlations = []
    for family in dict.fromkeys(each.family for each in means):
        own = np.array([[each.x, each.y] for each in means if each.family == family])
        fault = next((f"{name} {fault}" for name, v in ((x, own[:, 0]), (y, own[:, 1])) if (fault := why_not(v))), "")
        if fault:
            left_out[family] = f"no correlation over its settings: {fault}"
            continue
        value, p = correlation(own[:, 0], own[:, 1], method)
        correlations.append(FamilyCorrelation(family, value, p, len(own)))
    return Trend(x, y, tuple(means), tuple(correlations), left_out)


def setting_means(frame: DataFrame) -> DataFrame:
    """The frame with one row per family and setting: means of the numeric columns over its runs.

    For statistics over settings instead of runs, as in SNC/NK. Frames of several studies may be merged before; settings
    of different images stay apart.

    Raises:
        ValueError: the runs of a setting differ in more than their seed, or were scored by different rules.
    """
    check_columns(frame, ["family", "setting"])
    images, keys = _keys(frame)
    scores = [*headline_columns(frame), *(name for name in frame.columns if name == "udr.score")]
    for _, rows in frame.groupby(images, sort=False, dropna=False) if images else [((), frame)]:
        check_alike(rows, scores, keys)
    groups: Any = frame.groupby(keys, sort=False, dropna=False)
    means: Any = groups.mean(numeric_only=True)
    for name in means.columns:  # the mean of equal numbers is not always that number, which would part equal settings
        means[name] = means[name].where(groups[name].nunique() != 1, groups[name].first())
    return means.reset_index()


def means_with(frame: DataFrame, columns: Sequence[str]) -> DataFrame:
    """`setting_means` with columns of which the runs of a setting have one value, text included.

    Raises:
        ValueError: as `setting_means`; or the runs of a setting differ in such a column.
    """
    check_columns(frame, columns)
    means, (_, keys) = setting_means(frame), _keys(frame)
    groups: Any = frame.groupby(keys, sort=False, dropna=False)
    for name in (name for name in columns if name not in keys):
        own = groups[name]
        several = np.flatnonzero(own.nunique().to_numpy() > 1)
        if len(several):
            of = " ".join(str(means[key].iloc[several[0]]) for key in ("family", "setting")).strip()
            raise ValueError(f"{name} differs within the setting {of}, whose runs are averaged; compare over runs")
        means[name] = own.first().to_numpy()
    return means


def _keys(frame: DataFrame) -> tuple[list[str], list[str]]:
    """The columns that tell images apart, and those that tell settings apart."""
    images = [name for name in ("label", "dataset", "content") if name in frame.columns]
    return images, [*images, "family", "setting"]


def with_elbo(frame: DataFrame) -> DataFrame:
    """The frame with a column "elbo": minus the sum of train.reconstruction and train.kl, nats per image.

    Of the last point of the training curves, and without the weights that a family gives to its terms.

    Raises:
        ValueError: a run's curves lack them, so that the frame has no such columns.
    """
    check_columns(frame, ["train.reconstruction", "train.kl"])
    return frame.assign(elbo=-(numbers(frame, "train.reconstruction") + numbers(frame, "train.kl")))


def _settings(frame: DataFrame) -> dict[tuple[str, str], BoolArray]:
    check_columns(frame, ["family", "setting"])
    families, settings = (frame[name].fillna("").astype(str).to_numpy() for name in ("family", "setting"))
    keys = sorted(set(zip(families, settings, strict=True)), key=lambda key: (key[0], natural(key[1])))
    return {key: (families == key[0]) & (settings == key[1]) for key in keys}
