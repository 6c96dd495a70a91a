"""The table of codes."""

from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from sklearn.metrics import mutual_info_score

import unbraid
from tests.conftest import Cli
from unbraid import Representation
from unbraid.confidence.null import Shuffle
from unbraid.scoring.per_code import per_code

RNG = np.random.default_rng(0)
FACTORS = RNG.integers(0, [3, 6], (300, 2))
COLUMNS = [FACTORS[:, 1], FACTORS[:, 0] + RNG.integers(0, 2, 300), RNG.integers(0, 5, 300), np.ones(300)]
CODES = np.column_stack(COLUMNS).astype(float)
HELD = Representation(CODES, FACTORS, names=("shape", "hue"), kinds=("categorical", "categorical"))


def column(table: pd.DataFrame, name: str) -> Any:
    return table[name].to_numpy()


def test_it_is_that_of_a_plain_loop() -> None:
    """Codes of few whole values have a bin each, so that scikit-learn's information is the same."""
    table = per_code(HELD, null=199, seed=3)
    rng = np.random.default_rng(5)
    for code in range(3):

        def information(rows: np.ndarray, code: int = code) -> np.ndarray:
            return np.array([mutual_info_score(CODES[rows, code], factor) for factor in FACTORS.T])

        own = information(np.arange(300))
        moved = np.array([information(rng.permutation(300)) for _ in range(400)])
        entropy = np.array([mutual_info_score(factor, factor) for factor in FACTORS.T])
        shares = (own - moved.mean(axis=0)) / (entropy - moved.mean(axis=0))
        best = int(shares.argmax())
        by_luck = ((moved - moved.mean(axis=0)) / (entropy - moved.mean(axis=0))).max(axis=1)
        row = table.iloc[code]
        assert row["factor"] == HELD.names[best]
        assert row["second"] == HELD.names[1 - best]
        assert row["information"] == pytest.approx(own[best], abs=1e-12)
        assert row["share"] == pytest.approx(shares[best], abs=0.005)
        assert row["second_share"] == pytest.approx(shares[1 - best], abs=0.005)
        assert row["p"] == pytest.approx((1 + (by_luck >= shares[best]).sum()) / 401, abs=0.1)
    assert column(table, "share")[0] == pytest.approx(1, abs=1e-12)
    assert column(table, "p")[:2].tolist() == [1 / 200] * 2
    assert table.iloc[3][["factor", "information", "share", "second", "p"]].tolist() == ["", 0, 0, "", 1]
    assert column(table, "deviation") == pytest.approx(CODES.std(axis=0), abs=1e-12)


def test_its_shuffles_are_those_that_scores_are_compared_with() -> None:
    """In more orders than are looked at together."""
    table, n_times = per_code(HELD, null=25, seed=3), 25
    orders = [np.arange(300), *(Shuffle("rows", n_times).rows(None, 300, 3, which)[1] for which in range(n_times))]
    found = np.array([[mutual_info_score(CODES[rows, 1], factor) for factor in FACTORS.T] for rows in orders])
    entropy = np.array([mutual_info_score(factor, factor) for factor in FACTORS.T])
    shares = (found - found.mean(axis=0)) / (entropy - found.mean(axis=0))
    assert table["share"][1] == pytest.approx(shares[0, 0], abs=1e-12)
    assert table["second_share"][1] == pytest.approx(shares[0, 1], abs=1e-12)
    assert table["p"][1] == (shares.max(axis=1) >= shares[0].max() - 1e-12).sum() / 26


def test_q_is_that_of_benjamini_and_hochberg() -> None:
    table = per_code(HELD, null=99)
    order = np.argsort(column(table, "p"))
    p = column(table, "p")[order]
    q = [min(p[later] * len(p) / (later + 1) for later in range(rank, len(p))) for rank in range(len(p))]
    assert column(table, "q")[order] == pytest.approx(np.minimum(q, 1), abs=1e-12)


def test_a_factor_of_many_levels_is_not_the_best_of_noise() -> None:
    """By information alone it always would be; p is uniform over noise."""
    rng = np.random.default_rng(1)
    factors = rng.integers(0, [2, 40], (500, 2))
    held = Representation(rng.standard_normal((500, 300)), factors, kinds=("categorical", "categorical"))
    table = per_code(held, null=99)
    assert 0.3 < (column(table, "factor") == "factor_0").mean() < 0.7
    assert (column(table, "information") > 0).all()
    assert abs(column(table, "share").mean()) < 0.02
    assert (column(table, "p") <= 0.05).mean() < 0.1  # .05 expected, standard error .013
    assert 0.4 < column(table, "p").mean() < 0.6
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
    assert card.per_code(99).equals(per_code(HELD, null=99))


def test_the_command_writes_it(tmp_path: Path, unbraid_cli: Cli) -> None:
    HELD.save(tmp_path / "codes.npz")
    file = str(tmp_path / "codes.npz")
    told = ("score", file, "--metrics", "mig", "--null", "99")
    code, _, error = unbraid_cli(*told, "--per-code", str(tmp_path / "codes.csv"))
    assert code == 0
    assert "2 of 4 codes have significant information on a factor" in " ".join(error.split())
    read = pd.read_csv(tmp_path / "codes.csv", keep_default_na=False)
    pd.testing.assert_frame_equal(read, per_code(HELD, null=99), check_dtype=False)
    few = unbraid_cli(*told[:-1], "9", "--per-code", str(tmp_path / "few.csv"))[2]
    assert "0 of 4 codes" in few
    assert "(q <= 0.05); with --null 9 no p is below 0.1, and --null 999 may find some" in " ".join(few.split())
    assert "may find" not in error
    assert unbraid_cli(*told, "--per-code", str(tmp_path / "codes.txt"))[0] == 2
    assert unbraid_cli("score", file, file, "--per-code", str(tmp_path / "two.csv"))[0] == 2
