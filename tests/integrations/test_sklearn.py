"""Metrics as scorers in the loops of scikit-learn."""

import pickle
from typing import Any

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.decomposition import PCA, FactorAnalysis, FastICA
from sklearn.model_selection import GridSearchCV, KFold, cross_val_score, cross_validate
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

import unbraid
from unbraid.integrations.sklearn import scorer, scorers
from unbraid.metrics import dci_lasso, factor_leakage, factorised_support, mig

RNG = np.random.default_rng(0)
FACTORS = RNG.integers(0, 4, (900, 2))
MIXED = np.column_stack([FACTORS, RNG.standard_normal(900)]) @ RNG.standard_normal((3, 6))
KINDS: Any = ["ordinal", "ordinal"]
FOLDS = KFold(3)


def by_hand(estimator: Any, metric: Any, **params: Any) -> list[float]:
    found = []
    for train, test in FOLDS.split(MIXED):
        codes = clone(estimator).fit(MIXED[train]).transform(MIXED[test])
        found.append(metric(codes, FACTORS[test], kinds=KINDS, **params))
    return found


def test_cross_validation_scores_what_was_not_fitted() -> None:
    found = cross_validate(PCA(3), MIXED, FACTORS, cv=FOLDS, scoring=scorers(["mig", "factor_leakage"], kinds=KINDS))
    assert found["test_mig"].tolist() == by_hand(PCA(3), lambda *args, **about: mig(*args, **about).score)
    leakage = by_hand(PCA(3), lambda *args, **about: factor_leakage(*args, **about).nm_auc)
    assert found["test_factor_leakage"].tolist() == [-each for each in leakage]  # higher is better


def test_one_factor_may_be_the_y_of_scikit_learn() -> None:
    found = cross_val_score(PCA(3), MIXED, FACTORS[:, 0], cv=FOLDS, scoring=scorer("mig", kinds=["ordinal"]))
    each = [(PCA(3).fit(MIXED[train]).transform(MIXED[test]), FACTORS[test, :1]) for train, test in FOLDS.split(MIXED)]
    assert found.tolist() == [mig(codes, factor, kinds=["ordinal"]).score for codes, factor in each]


def test_without_factors_metrics_that_need_none_are_scored() -> None:
    found = cross_val_score(PCA(3), MIXED, cv=FOLDS, scoring=scorer("factorised_support"))
    folds = [PCA(3).fit(MIXED[train]).transform(MIXED[test]) for train, test in FOLDS.split(MIXED)]
    assert found.tolist() == pytest.approx([-factorised_support(codes).score for codes in folds])
    with pytest.raises(ValueError, match="these codes have no factors to score against"):
        cross_val_score(PCA(3), MIXED, cv=FOLDS, scoring=scorer("mig"), error_score="raise")


def test_arguments_values_and_pipelines() -> None:
    pipeline = make_pipeline(StandardScaler(), FastICA(3, random_state=0))
    found = cross_val_score(pipeline, MIXED, FACTORS, cv=FOLDS, scoring=scorer("mig", kinds=KINDS, bins=8))
    assert found.tolist() == pytest.approx(by_hand(pipeline, lambda *args, **about: mig(*args, bins=8, **about).score))
    asked = scorer("dci_lasso", kinds=KINDS, value="completeness")
    complete = by_hand(PCA(2), lambda *args, **about: dci_lasso(*args, **about).completeness)
    assert cross_val_score(PCA(2), MIXED, FACTORS, cv=FOLDS, scoring=asked).tolist() == pytest.approx(complete)


def test_folds_that_lack_the_last_steps_of_a_circle_go_around_as_far_as_sizes_say() -> None:
    steps = RNG.integers(0, 12, (300, 1))
    X, late = np.hstack([np.cos(np.pi * steps / 6), np.sin(np.pi * steps / 6)]), steps[:, 0] > 6
    whole = StandardScaler().fit(X)
    found = {
        sizes: scorer("r2", kinds=["cyclic"], sizes=sizes)(whole, X[~late], steps[~late]) for sizes in ((12,), None)
    }
    assert found[(12,)] == pytest.approx(1.0)
    assert found[None] < 0.9


def test_a_search_finds_the_decomposition_that_separates_the_factors() -> None:
    sources = np.column_stack([FACTORS, RNG.uniform(size=900)]) @ RNG.standard_normal((3, 5))
    search = GridSearchCV(
        make_pipeline(PCA(3)), {"pca": [PCA(3), FastICA(3, random_state=0)]}, cv=FOLDS,
        scoring=scorers(["mig", "snc"], kinds=KINDS), refit="mig",
    )  # fmt: skip
    search.fit(sources, FACTORS)
    assert isinstance(search.best_params_["pca"], FastICA)
    assert search.best_score_ > 0.2 + search.cv_results_["mean_test_mig"].min()


def test_a_function_of_ones_own_and_another_method() -> None:
    def width(codes: Any, factors: Any) -> float:  # noqa: ARG001
        return float(codes.shape[1])

    assert scorers([width])["width"](PCA(2).fit(MIXED), MIXED, FACTORS) == 2
    assert list(scorers("mig")) == ["mig"]
    lower = unbraid.metrics.custom_metric(width, direction="lower")
    assert scorers([lower])["width"](PCA(2).fit(MIXED), MIXED, FACTORS) == -2
    turned = scorer("mig", method="inverse_transform", kinds=KINDS)
    fitted, codes = PCA(2).fit(MIXED), RNG.standard_normal((900, 2))
    assert turned(fitted, codes, FACTORS) == mig(fitted.inverse_transform(codes), FACTORS, kinds=KINDS).score


def test_a_scorer_goes_to_other_processes() -> None:
    sent = pickle.loads(pickle.dumps(scorer("mig", kinds=KINDS, bins=8)))
    fitted = PCA(2).fit(MIXED)
    assert sent(fitted, MIXED, FACTORS) == mig(fitted.transform(MIXED), FACTORS, kinds=KINDS, bins=8).score


@pytest.mark.parametrize(
    ("wrong", "said"),
    [
        (lambda: scorer("mgi"), "unknown metric 'mgi'; did you mean 'mig'?"),
        (lambda: scorer("mig", bin=8), "mig takes no argument 'bin'; did you mean 'bins'?"),
        (lambda: scorer("sae"), "is several metrics, mig, snc, mcc, modularity; name one"),
        (lambda: scorer("mig", value="ceiling"), "neither more nor less of 'ceiling' is better"),
    ],
)
def test_a_mistake_is_one_line(wrong: Any, said: str) -> None:
    with pytest.raises(ValueError, match=said) as error:
        wrong()
    assert "\n" not in str(error.value)


def test_decompositions_are_ranked_as_they_are() -> None:
    sources = np.column_stack([FACTORS, RNG.uniform(size=900)]) @ RNG.standard_normal((3, 6))
    codes = {f"ICA {seed}": FastICA(3, random_state=seed).fit_transform(sources) for seed in range(3)}
    others = {"PCA": PCA(3).fit_transform(sources), "FA": FactorAnalysis(2).fit_transform(sources)}
    found = unbraid.rank({**codes, **others}, similarity="spearman")
    assert found.runs == (*codes, *others)
    assert min(found.scores[:3]) > max(found.scores[3:])
