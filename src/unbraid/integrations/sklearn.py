"""scikit-learn: metrics as scorers of `cross_validate` and `GridSearchCV`."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from unbraid.integrations.single_metric import Kinds, Number, number
from unbraid.scoring.score import Named

__all__ = ["Scorer", "scorer", "scorers"]


@dataclass(frozen=True)
class Scorer:
    """Called as `scorer(estimator, X, y)`, with factors for y; higher is better, whatever the metric.

    Metrics that need no factors are scored without y, too.
    """

    number: Number
    method: str
    sign: float

    def __call__(self, estimator: Any, X: Any, y: Any = None) -> float:  # noqa: N803 (as scikit-learn calls it)
        encode = getattr(estimator, self.method, None)
        if encode is None:
            raise ValueError(f"{type(estimator).__name__} has no method {self.method!r}; name one that returns codes")
        return self.sign * self.number.compute(encode(X), y)


def scorer(
    name: Named,
    *,
    method: str = "transform",
    kinds: Kinds | None = None,
    sizes: Sequence[int] | None = None,
    value: str | None = None,
    seed: int = 0,
    **params: Any,
) -> Scorer:
    """A metric as scikit-learn takes it: for `scoring=` of `cross_validate`, `GridSearchCV` and others.

    Args:
        name: of the metric, or a function of your own, as `metrics` of `unbraid.score`.
        method: of the estimator, from X to codes (n_samples, n_codes).
        kinds: of the factors, which are y (n_samples, n_factors), an array or a frame.
        sizes: number of levels of each factor, where a part of the rows may lack the last ones of a cyclic factor.
        value: number of the metric's result, such as "completeness"; default its headline.
        seed: of the metric.
        **params: arguments of the metric, such as bins=10.

    Returns:
        Scorer, of which higher is better: where lower is, the number comes with a minus.

    Raises:
        ValueError: an unknown metric or argument, or a value of which neither more nor less is better.

    Example:
        >>> from sklearn.decomposition import PCA
        >>> from sklearn.model_selection import cross_val_score
        >>> rng = np.random.default_rng(0)
        >>> factors = rng.integers(0, 4, (900, 2))
        >>> X = factors * [1.0, 3.0] + 0.1 * rng.standard_normal((900, 2))
        >>> float(cross_val_score(PCA(2), X, factors, cv=3, scoring=scorer("mig")).min()) > 0.9
        True
    """
    chosen = number(name, kinds, sizes, value, seed, params)
    return Scorer(chosen, method, 1.0 if chosen.higher_is_better else -1.0)


def scorers(names: str | Sequence[Named], **options: Any) -> dict[str, Scorer]:
    """Several of them by name, for `cross_validate` and for `GridSearchCV` with refit.

    Args:
        names: of the metrics, or of one.
        **options: as for `scorer`, the same for all.
    """
    names = [names] if isinstance(names, str) else names
    made = [scorer(name, **options) for name in names]
    return {name if isinstance(name, str) else one.number.row.name: one for name, one in zip(names, made, strict=True)}
