"""The table of codes."""

from itertools import permutations
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from scipy import sparse
from scipy.stats import gamma, hypergeom
from sklearn.metrics import mutual_info_score
from sklearn.metrics.cluster import contingency_matrix, expected_mutual_information

import unbraid
from tests.conftest import Cli
from unbraid import Representation
from unbraid.base.types import FloatArray
from unbraid.metrics._shared import independence
from unbraid.scoring.null import Shuffle
from unbraid.scoring.per_code import per_code

RNG = np.random.default_rng(0)
FACTORS = RNG.integers(0, [3, 6], (300, 2))
COLUMNS = [FACTORS[:, 1], FACTORS[:, 0] + RNG.integers(0, 2, 300), RNG.integers(0, 5, 300), np.ones(300)]
CODES = np.column_stack(COLUMNS).astype(float)
HELD = Representation(CODES, FACTORS, names=("shape", "hue"), kinds=("categorical", "categorical"))


def column(table: pd.DataFrame, name: str) -> Any:
    return table[name].to_numpy()


def test_information_and_shares_are_those_of_scikit_learn() -> None:
    """Codes of few whole values have a bin each; the mean over all orders of the rows is Vinh et al.'s."""
    table = per_code(HELD)
    for code in range(3):
        own = np.array([mutual_info_score(CODES[:, code], factor) for factor in FACTORS.T])
        expected = np.array(
            [expected_mutual_information(contingency_matrix(factor, CODES[:, code]), 300) for factor in FACTORS.T]
        )
        entropy = np.array([mutual_info_score(factor, factor) for factor in FACTORS.T])
        shares = (own - expected) / (entropy - expected)
        best = int(shares.argmax())
        row = table.iloc[code]
        assert row["factor"] == HELD.names[best]
        assert row["second"] == HELD.names[1 - best]
        assert row["information"] == pytest.approx(own[best], abs=1e-12)
        assert row["share"] == pytest.approx(shares[best], abs=1e-9)
        assert row["second_share"] == pytest.approx(shares[1 - best], abs=1e-9)
    assert column(table, "share")[0] == pytest.approx(1, abs=1e-12)
    assert column(table, "p")[:2].max() < 1e-30
    assert table.iloc[3][["factor", "information", "share", "second", "p"]].tolist() == ["", 0, 0, "", 1]
    assert column(table, "deviation") == pytest.approx(CODES.std(axis=0), abs=1e-12)


def test_codes_that_are_mostly_zero_have_the_mid_p_of_fisher() -> None:
    """Of firing at each of three levels, and of two factors, by SciPy's hypergeometric distribution and Šidák."""
    rng = np.random.default_rng(3)
    factors = np.column_stack([rng.integers(0, 3, 200), rng.random(200) < 0.1]).astype(int)
    fires = (rng.random((200, 6)) < [0.03, 0.1, 0.2, 0.3, 0.4, 0.1]) | (factors[:, [1]] & (np.arange(6) == 5))
    table = per_code(Representation(fires * rng.standard_normal((200, 6)), factors, kinds=("categorical",) * 2))
    for code, own in enumerate(fires.T):

        def mid_p(on: np.ndarray, own: np.ndarray = own) -> float:
            law, n = (200, on.sum(), own.sum()), (on & own).sum()
            half = hypergeom.pmf(n, *law) / 2
            return float(min(1.0, 2 * min(hypergeom.cdf(n, *law) - half, hypergeom.sf(n, *law) + half)))

        of_three = 1 - (1 - min(mid_p(factors[:, 0] == level) for level in range(3))) ** 3
        expected = 1 - (1 - min(of_three, mid_p(factors[:, 1] == 1))) ** 2
        assert column(table, "p")[code] == pytest.approx(expected, rel=1e-9)
    assert column(table, "p")[5] < 1e-6


def test_chi_square_has_the_mean_and_variance_of_all_orders() -> None:
    """Of six rows all 720 orders are counted; p is that of the gamma distribution with these moments."""
    rows, columns = np.array([0, 0, 0, 1, 1, 2]), np.array([0, 0, 1, 1, 1, 1])

    def table_of(order: np.ndarray) -> FloatArray:
        table = np.zeros((3, 2))
        np.add.at(table, (rows, columns[order]), 1)
        return table

    def pearson(table: FloatArray) -> float:
        expected = np.outer(table.sum(axis=1), table.sum(axis=0)) / 6
        return float(((table - expected) ** 2 / expected).sum())

    orders = [np.array(order) for order in permutations(range(6))]
    statistics = [pearson(table_of(order)) for order in orders]
    mean, variance = np.mean(statistics), np.var(statistics)
    for order in orders[:40:13]:
        statistic = pearson(table_of(order))
        expected = gamma.sf(statistic, mean**2 / variance, scale=variance / mean)
        assert independence._chi_square(table_of(order)[None])[0] == pytest.approx(expected, rel=1e-9)


@pytest.mark.parametrize(
    ("draw", "n_levels"),
    [
        (lambda rng: rng.standard_normal((1000, 600)), 2),
        (lambda rng: rng.standard_t(2, (1000, 600)), 12),
        (lambda rng: rng.poisson(3, (1000, 600)).astype(float), 5),
        (lambda rng: np.where(rng.random((1000, 600)) < 0.05, rng.lognormal(size=(1000, 600)), 0.0), 4),
    ],
    ids=["normal", "heavy tails", "counts", "sparse"],
)
def test_p_is_uniform_over_noise(draw: Any, n_levels: int) -> None:
    rng = np.random.default_rng(1)
    codes, factors = draw(rng), rng.integers(0, n_levels, (1000, 2))
    p = column(per_code(Representation(codes, factors, kinds=("categorical",) * 2)), "p")
    assert 0.03 < np.mean(p < 0.05) < 0.07
    assert 0.45 < p.mean() < 0.57
    assert np.mean(p < 0.005) < 0.015


def test_sparse_codes_fire_too_rarely_to_be_significant_by_chance() -> None:
    rng = np.random.default_rng(2)
    codes, factors = (rng.random((2000, 1000)) < 0.003).astype(float), (rng.random((2000, 5)) < 0.02).astype(int)
    p = column(per_code(Representation(codes, factors, kinds=("categorical",) * 5)), "p")
    assert np.mean(p < 0.05) < 0.05


@pytest.mark.lengthy
def test_thirty_of_hundreds_of_sparse_codes_are_found(tmp_path: Path, unbraid_cli: Cli) -> None:
    rng = np.random.default_rng(4)
    concepts = rng.random((1000, 30)) < rng.uniform(0.05, 0.3, 30)
    fires = rng.random((1000, 600)) < 0.01
    fires[:, :30] = concepts & (rng.random((1000, 30)) < 0.5)
    codes: Any = sparse.csr_array(fires * rng.lognormal(size=fires.shape))
    labels = {f"concept {k}": concepts[:, k] for k in range(30)}
    card = unbraid.score(codes, labels, metrics="mig")
    table = card.per_code()
    assert (column(table, "q")[:30] < 1e-6).all()
    assert column(table, "factor")[:30].tolist() == list(labels)
    assert (column(table, "q")[30:] <= 0.05).mean() < 0.005
    dense = unbraid.score(codes.toarray()[:, :40], labels, metrics="mig").per_code()
    pd.testing.assert_frame_equal(dense.iloc[:, :8], table.iloc[:40, :8])
    sparse.save_npz(tmp_path / "codes.npz", codes)
    pd.DataFrame(labels).to_csv(tmp_path / "labels.csv", index=False)
    files = str(tmp_path / "codes.npz"), "--labels", str(tmp_path / "labels.csv"), "--metrics", "mig"
    code, _, error = unbraid_cli("score", *files, "--per-code", str(tmp_path / "table.csv"))
    assert code == 0, error
    assert len(pd.read_csv(tmp_path / "table.csv")) == 600


def test_q_is_that_of_benjamini_and_hochberg() -> None:
    table = per_code(HELD, null=99)
    order = np.argsort(column(table, "p"))
    p = column(table, "p")[order]
    q = [min(p[later] * len(p) / (later + 1) for later in range(rank, len(p))) for rank in range(len(p))]
    assert column(table, "q")[order] == pytest.approx(np.minimum(q, 1), abs=1e-12)


def test_a_factor_of_many_levels_is_not_the_best_of_noise() -> None:
    """By information alone it always would be."""
    rng = np.random.default_rng(1)
    factors = rng.integers(0, [2, 40], (500, 2))
    held = Representation(rng.standard_normal((500, 300)), factors, kinds=("categorical", "categorical"))
    table = per_code(held)
    assert 0.3 < (column(table, "factor") == "factor_0").mean() < 0.7
    assert (column(table, "information") > 0).all()
    assert abs(column(table, "share").mean()) < 0.02
    assert not (column(table, "q") <= 0.05).any()


def test_groups_are_moved_whole_and_series_shifted() -> None:
    """Codes and a factor that are constant within ten groups: shuffled rows tell them apart, groups do not."""
    rng = np.random.default_rng(2)
    groups = np.repeat(np.arange(10), 40)
    factor = np.append(rng.permutation([0, 0, 0, 0, 0, 1, 1, 1, 1, 1]), 0)[groups][:, None]
    codes = rng.standard_normal((10, 20))[groups]
    alone = per_code(Representation(codes, factor, kinds=("categorical",)), null=99)
    together = per_code(Representation(codes, factor, kinds=("categorical",), groups=groups), null=99)
    assert (column(alone, "p") <= 0.05).all()
    assert (column(together, "p") <= 0.05).mean() < 0.3
    walk = np.cumsum(rng.standard_normal((1000, 9)), axis=0)
    held = Representation(walk[:, 1:], walk[:, :1], kinds=("continuous",))
    assert (column(per_code(held, null=99), "p") <= 0.05).all()
    assert (column(per_code(held, null="shift:99"), "p") <= 0.05).mean() < 0.5


def test_p_of_moved_groups_goes_below_that_of_all_moves_by_those_of_all_codes() -> None:
    """Forty groups of ten rows; the moves of ten codes are compared with by their standard scores."""
    rng = np.random.default_rng(5)
    groups = np.repeat(np.arange(40), 10)
    factor = rng.integers(0, 2, 40)[groups][:, None]
    codes = rng.integers(0, 3, (400, 10)).astype(float)
    codes[:, 0] = 3 * factor[:, 0] + codes[:, 0]
    held = Representation(codes, factor, kinds=("categorical",), groups=groups)
    table = per_code(held, null=49, seed=2)
    shuffle = Shuffle("groups", 49)
    moved = np.array(
        [
            [
                mutual_info_score(codes[shuffle.rows(groups, 400, 2, number)[1], code], factor[:, 0])
                for code in range(10)
            ]
            for number in range(49)
        ]
    )
    own = np.array([mutual_info_score(code, factor[:, 0]) for code in codes.T])
    above = (moved >= own - 1e-12).sum(axis=0)
    scores = (moved - moved.mean(axis=0)) / moved.std(axis=0)
    beyond = np.array([(scores >= (own[k] - moved[:, k].mean()) / moved[:, k].std() - 1e-6).sum() for k in range(10)])
    expected = np.where(above > 0, (1 + above) / 50, np.minimum((1 + beyond) / (1 + 49 * 10), 1 / 50))
    assert column(table, "p") == pytest.approx(expected, abs=1e-4)
    assert column(table, "p")[0] == 1 / 491
    assert column(table, "q")[0] < 0.05
    assert (column(table, "p")[1:] <= 0.05).mean() < 0.2


def test_a_series_that_is_shifted_has_the_share_of_its_middle_half() -> None:
    """There the factor has all its levels, and outside it one, so that all rows together have less entropy."""
    factor = np.zeros((200, 1), dtype=int)
    factor[50:150, 0] = np.random.default_rng(0).integers(0, 4, 100)
    table = per_code(Representation(factor.astype(float), factor, kinds=("categorical",)), null="shift:9")
    assert column(table, "share") == pytest.approx([1.0], abs=1e-12)
    assert column(table, "information") == pytest.approx([mutual_info_score(factor[:, 0], factor[:, 0])], abs=1e-12)


def test_what_it_refuses(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="null must be at least 1"):
        per_code(HELD, null=0)
    with pytest.raises(ValueError, match="have no factors"):
        per_code(Representation(CODES))
    with pytest.raises(ValueError, match="weighted"):
        per_code(Representation(CODES, FACTORS, weights=np.ones(300)))
    card = unbraid.score(HELD, metrics="mig")
    card.save(tmp_path / "card.json")
    with pytest.raises(ValueError, match="holds no codes"):
        unbraid.ScoreCard.load(tmp_path / "card.json").per_code()
    assert card.per_code().equals(per_code(HELD))
