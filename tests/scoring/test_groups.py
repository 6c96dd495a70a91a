"""Rows that hang together: kept, permuted, shifted and parted by groups, and the note where nobody has said so."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from scipy.signal import lfilter
from typer.testing import CliRunner

import unbraid
from unbraid import Representation, score
from unbraid.base.types import Kind
from unbraid.cli.app import app
from unbraid.data.labels import check_groups
from unbraid.metrics._shared.inputs import split_rows
from unbraid.metrics._shared.resampling import Resampling, draw_part
from unbraid.scoring.card_tables import group_rows
from unbraid.scoring.dependence import _as_columns, in_order, note_on_neighbours, with_repeats_as_groups
from unbraid.scoring.engine import ScoreSettings
from unbraid.scoring.equal_rows import subsets_of_groups
from unbraid.scoring.null import Shuffle, parse_null
from unbraid.scoring.score import choose
from unbraid.scoring.uncertainty import part_scorer, scores_of_parts

RNG = np.random.default_rng(0)
SIZES = RNG.integers(8, 30, 20)
GROUPS = np.repeat(np.arange(20), SIZES)
FACTORS = np.stack([RNG.integers(0, 3, len(GROUPS)), RNG.integers(0, 4, len(GROUPS))], axis=1)
CODES = np.hstack([FACTORS + 0.3 * RNG.standard_normal(FACTORS.shape), RNG.standard_normal((len(GROUPS), 1))])
HELD = Representation(CODES, FACTORS, groups=GROUPS, names=("shape", "size"))


def walks(seed: int, n_samples: int = 600, n_codes: int = 4) -> Representation:
    rng = np.random.default_rng(seed)
    codes = np.cumsum(rng.standard_normal((n_samples, n_codes)), axis=0)
    angle = np.mod(np.cumsum(0.1 * rng.standard_normal(n_samples)), 2 * np.pi)
    return Representation(codes, angle[:, None], names=("hue",), kinds=("cyclic",))


@pytest.mark.parametrize("labels", [["b", "a", "b", "c"], [7, 3, 7, 9], [2.5, 1.0, 2.5, 3.5], [True, False, True, 2]])
def test_labels_of_any_sort_become_numbers(labels: list[Any]) -> None:
    numbers = check_groups(labels, 4)
    assert numbers.dtype == np.int64
    assert [numbers[0] == each for each in numbers] == [True, False, True, False]
    assert sorted(set(numbers.tolist())) == [0, 1, 2]


@pytest.mark.parametrize(
    ("labels", "said"),
    [
        (["a", None, "b"], "groups must have a label in every row; row 1 has none"),
        ([1.0, 2.0, np.nan], "groups must have a label in every row; row 2 has none"),
        ([1, 2], r"groups must be one label per row, \(3,\); got shape \(2,\)"),
    ],
)
def test_groups_that_are_none_are_told(labels: Any, said: str) -> None:
    with pytest.raises(ValueError, match=said):
        score(np.eye(3), [[0], [1], [1]], groups=labels)


@pytest.mark.parametrize("absent", [None, np.nan, ""])
def test_a_row_that_is_left_out_for_its_label_needs_no_group(absent: Any) -> None:
    labels, groups = {"x": ["a", None, "b", "a"]}, ["p", absent, "q", "p"]
    held = Representation.of(np.eye(4), labels, groups=groups)
    assert held.groups is not None
    assert held.groups.tolist() == [0, 1, 0]
    with pytest.raises(ValueError, match="groups must have a label in every row; row 3 has none"):
        Representation.of(np.eye(4), labels, groups=[*groups[:3], absent])


def test_groups_go_with_their_rows() -> None:
    kept = HELD.keep_rows(np.array([0, len(GROUPS) - 1, 1]))
    assert kept.groups is not None
    assert kept.groups.tolist() == [0, 1, 0]
    labels = {"shape": ["heart", None, "square", "heart"], "mouse": ["b", "a", "a", "b"]}
    made = Representation.of(np.eye(4), labels, groups="mouse")
    assert made.names == ("shape",)
    assert made.groups is not None
    assert made.groups.tolist() == [1, 0, 1]
    with pytest.raises(ValueError, match="groups='mous' names no column of labels; did you mean 'mouse'"):
        Representation.of(np.eye(4), labels, groups="mous")


def test_a_column_of_labels_or_a_factor_can_be_named() -> None:
    frame = {"shape": FACTORS[:, 0], "mouse": [f"m{g}" for g in GROUPS]}
    card = score(CODES, frame, metrics="mig", groups="mouse")
    assert card.representation.names == ("shape",)
    assert "rows in 20 groups, which are never parted" in card.notes
    assert "rows in 1 group, which is never parted" in score(CODES, FACTORS, metrics="mig", groups=0 * GROUPS).notes
    own = Representation(CODES, np.column_stack([FACTORS, GROUPS]), names=("shape", "size", "mouse"))
    assert score(own, metrics="mig", groups="mouse")["mig"].score == score(HELD, metrics="mig")["mig"].score
    twice = score(own, metrics="mig", groups="mouse", weights=np.full(len(CODES), 2.0)).representation
    assert twice.weights is not None
    assert (twice.weights == 2).all()
    with pytest.raises(ValueError, match="brings its own groups"):
        score(HELD, metrics="mig", groups=GROUPS)


def test_the_card_says_what_was_decided_by_groups() -> None:
    card = score(HELD, metrics=["mig", "snc"])
    assert "groups" in card.computed_with["snc"]
    assert "groups" not in card.computed_with["mig"]


def test_whole_groups_change_places() -> None:
    held = Representation(np.arange(12.0)[:, None], np.arange(12)[:, None], groups=np.repeat([0, 1, 2, 3], 3))
    moved = Shuffle("groups", 1).apply(held, 0, 1).codes[:, 0].reshape(4, 3)
    assert (np.diff(moved, axis=1) == 1).all()
    assert sorted(moved[:, 0]) == [0, 3, 6, 9]
    uneven = Representation(np.arange(5.0)[:, None], np.arange(5)[:, None], groups=np.array([0, 0, 1, 1, 1]))
    found = {tuple(Shuffle("groups", 1).apply(uneven, 0, k).codes[:, 0]) for k in range(20)}
    assert found == {(0, 1, 2, 3, 4), (2, 3, 0, 1, 0)}  # cut short, and begun again


@pytest.mark.parametrize("groups", [None, np.repeat([0, 1], [30, 20])])
def test_a_shift_puts_another_stretch_of_codes_beside_the_middle_half(groups: Any) -> None:
    held = Representation(
        np.arange(50.0)[:, None], np.arange(50)[:, None], groups=groups, log_variances=-np.arange(50.0)[:, None]
    )
    shuffle = Shuffle("shift", 24)
    parts = [(0, 50, 12)] if groups is None else [(0, 30, 7), (30, 50, 5)]
    middle = np.concatenate([np.arange(start + margin, end - margin) for start, end, margin in parts])
    assert shuffle.unmoved(held).codes[:, 0].tolist() == middle.tolist()
    starts = []
    for draw in range(24):
        moved = shuffle.apply(held, 0, draw)
        assert moved.factors[:, 0].tolist() == middle.tolist()
        assert moved.log_variances is not None
        assert (moved.log_variances == -moved.codes).all(), "posteriors go with their codes"
        distances, place = [], 0
        for start, end, margin in parts:
            codes = moved.codes[place : place + end - start - 2 * margin, 0]
            place += len(codes)
            assert (np.diff(codes) == 1).all(), "no jump, no fold"
            assert start <= codes[0] <= codes[-1] < end
            distances.append(int(codes[0]) - start - margin)
        assert all(distances), "the rows as they are are no shift"
        starts.append(tuple(distances))
    if groups is None:
        assert sorted(starts) == [(far,) for far in range(-12, 13) if far], "evenly, each of them once"
    else:
        assert any(one != other for one, other in starts), "each group by a distance of its own"


def test_shifts_are_compared_with_the_middle_half(tmp_path: Path) -> None:
    held = walks(0)
    card = score(held, metrics=["mig", "sap"], null="shift:5")
    alone = score(held.keep_rows(np.arange(150, 450)), metrics=["mig", "sap"])
    for name in ("mig", "sap"):
        null = card.scored[name].null
        assert null is not None
        assert null.score == alone[name].score != card[name].score
        assert f"middle half of the rows {null.score:.3f}, with rows shifted" in null.note
        assert null.p == (1 + (null.scores >= null.score).sum()) / 6
    card.save(tmp_path / "card.json")
    kept = unbraid.ScoreCard.load(tmp_path / "card.json").scored["mig"].null
    assert kept is not None
    assert kept.score == alone["mig"].score
    held.save(tmp_path / "walks.npz")
    command = ["score", str(tmp_path / "walks.npz"), "--metrics", "mig", "--null", "shift:5", "--details"]
    shown = CliRunner().invoke(app, command)
    assert f"which shifts are compared with, {kept.score:.3f}" in " ".join(shown.output.split())  # lines wrap


def test_groups_too_short_to_be_shifted_are_told() -> None:
    n_short = int((SIZES < 10).sum())
    card = score(HELD, metrics="mig", null="shift:3")
    assert f"{n_short} of 20 groups have fewer than 10 rows, too few to be shifted" in card.notes
    assert 0 < n_short < 20
    with pytest.raises(ValueError, match="null='shift' needs groups of rows of 10 or more; the longest has 1"):
        score(CODES, FACTORS, metrics="mig", null="shift", groups=np.arange(len(CODES)))


def test_what_a_null_would_leave_as_it_is_is_refused_and_the_other_named() -> None:
    by_group = (np.arange(20) % 3)[GROUPS][:, None]
    with pytest.raises(
        ValueError, match=r"every factor is constant: nothing would change. A number, null=100, shuffles"
    ):
        score(CODES, by_group, metrics="mig", null="shift", groups=GROUPS)
    both = np.column_stack([by_group, FACTORS[:, 0]])
    noted = score(CODES, both, metrics="mig", null="shift:2", groups=GROUPS, names=["mouse", "shape"]).notes
    assert "constant within groups, so that shifts leave them as they are: mouse" in noted
    trials = np.repeat(np.arange(10), 12)
    with pytest.raises(ValueError, match=r"every group has the same factors, row by row: nothing would change"):
        score(CODES[:120], np.tile(np.arange(12) % 4, 10)[:, None], metrics="mig", null=9, groups=trials)
    with pytest.raises(ValueError, match=r"needs 5; there are 4\. null='shift' moves rows within groups"):
        score(CODES[:120], FACTORS[:120], metrics="mig", null=9, groups=np.repeat(np.arange(4), 30))


def test_how_often_and_how() -> None:
    assert parse_null("shift") == (True, 100)
    assert parse_null("shift:7") == (True, 7)
    assert parse_null(7) == (False, 7)
    for wrong in ("shift:", "shift:0", "shift:-1", "shuffle", "7.5"):
        with pytest.raises(ValueError, match="null must be a whole number, such as 99, 'shift' or 'shift:200'; got"):
            parse_null(wrong)
    with pytest.raises(ValueError, match="null must be a whole number, 0 or more"):
        parse_null(-1)


@pytest.mark.lengthy
def test_p_is_low_of_what_is_related_and_seldom_of_what_is_not() -> None:
    low = {"related": 0, "unrelated": 0}
    for sample in range(20):
        rng = np.random.default_rng(sample)
        effects = rng.integers(0, 3, 25)[:, None]
        factors = np.where(rng.random((25, 8)) < 0.8, effects, rng.integers(0, 3, (25, 8))).ravel()
        codes = (rng.standard_normal((25, 1, 3)) + 0.3 * rng.standard_normal((25, 8, 3))).reshape(-1, 3)
        for name, share in (("related", 1.5), ("unrelated", 0.0)):
            given = codes + share * factors[:, None] * [1, 0, 0]
            null = (
                score(given, factors[:, None], metrics="sap", null=19, groups=np.repeat(np.arange(25), 8))
                .scored["sap"]
                .null
            )
            low[name] += null is not None and null.p <= 0.05
    assert low["related"] >= 17
    assert low["unrelated"] <= 4


def test_of_unrelated_walks_shifts_seldom_tell_anything() -> None:
    low = {"shift:19": 0, 19: 0}
    for seed in range(12):
        for null in low:
            found = score(walks(seed), metrics="sap", null=null).scored["sap"].null
            low[null] += found is not None and found.p <= 0.05
    assert low["shift:19"] <= 3
    assert low[19] >= 9


@pytest.mark.parametrize("one_in", [2, 5])
def test_a_part_has_whole_groups_and_those_to_train_on_stay_such(one_in: int) -> None:
    groups = np.random.default_rng(0).permutation(np.repeat(np.arange(100), 5))
    rows = draw_part(500, groups, Resampling(one_in), 7, 3)
    assert len(rows) == len(set(rows.tolist())) == 500 - 500 // one_in
    assert (np.bincount(groups[rows], minlength=100) % 5 == 0).all()
    own = np.repeat(np.arange(len(rows) // 5), 5)  # as they come
    for fractions in ((0.8, 0.2), (0.5, 0.5)):
        whole = split_rows(500, fractions, 7, groups)
        for part, of_all in zip(split_rows(len(rows), fractions, 7, own), whole, strict=True):
            assert set(rows[part]) <= set(of_all)


def test_quick_ways_to_parts_are_those_of_the_metric() -> None:
    chosen = choose(["sap", "snc", "dci_lasso", "amari", "irs", "mig", "mcc", "r2"])
    both: tuple[tuple[Kind, Kind], ...] = (("ordinal", "ordinal"), ("categorical", "ordinal"))
    for kinds in both:
        held = Representation(CODES, FACTORS, groups=GROUPS, kinds=kinds)
        rows = draw_part(len(GROUPS), GROUPS, Resampling(), 3, 1)
        found = part_scorer(held, chosen, 3, None)(rows, list(chosen))
        _, first, number = np.unique(GROUPS[rows], return_index=True, return_inverse=True)
        part = Representation(CODES[rows], FACTORS[rows], kinds=kinds, groups=np.argsort(np.argsort(first))[number])
        card = score(part, metrics=list(chosen), seed=3)
        for name, numbers in found.items():
            assert not isinstance(numbers, Exception)
            assert numbers.values == pytest.approx(card.scored[name].values, abs=1e-9)


def test_an_interval_is_of_as_many_numbers_as_groups() -> None:
    assert Resampling().on(400, 12).degrees(np.ones(200)) == 11
    assert Resampling(freedom=3).on(400, 12).degrees(np.ones(200)) == 3
    assert Resampling(freedom=30).on(400, 12).degrees(np.ones(200)) == 11
    assert Resampling(freedom=3).on(400).degrees(np.ones(200)) == 3
    for n_parts, freedom in ((30, 19), (40, 9)):  # half of what 20 groups have, where there are pairs
        parts, _ = scores_of_parts(HELD, score(HELD, metrics="mig").scored, n_parts, ScoreSettings(0))
        assert parts["mig"].method.freedom == freedom
    with pytest.raises(ValueError, match="intervals need 10 groups of rows or more; there are 9"):
        score(HELD.keep_rows(np.flatnonzero(GROUPS < 9)), metrics="mig", confidence=0.9)


def test_an_interval_by_groups_is_wider_where_rows_hang_together() -> None:
    rng = np.random.default_rng(1)
    groups = np.repeat(np.arange(20), 30)
    factors = np.clip(np.rint(rng.standard_normal(20)[groups] + 0.3 * rng.standard_normal(600) + 2), 0, 4)[:, None]
    codes = np.column_stack([factors[:, 0] + rng.standard_normal(20)[groups], rng.standard_normal(600)])
    of_groups, of_rows = (
        score(codes, factors, metrics="sap", confidence=(0.9, 40), groups=each).scored["sap"].intervals
        for each in (groups, None)
    )
    assert of_groups is not None
    assert of_rows is not None
    assert of_groups.values["score"].deviation > 2 * of_rows.values["score"].deviation


@pytest.mark.lengthy
def test_an_interval_of_modularity_by_groups_is_as_wide_as_it_must_be() -> None:
    """The modularity of a code of noise strays as far on many rows as on few, which a scale by their number misses."""

    def drawn(seed: int) -> Representation:
        rng, groups = np.random.default_rng(seed), np.repeat(np.arange(30), 50)
        factors = np.clip(np.rint(rng.standard_normal((30, 2))[groups] + rng.standard_normal((1500, 2)) + 2), 0, 4)
        codes = rng.standard_normal((30, 4))[groups] + rng.standard_normal((1500, 4))
        codes[:, :2] += factors - 2
        return Representation(codes, factors, kinds=("ordinal",) * 2, groups=groups)

    scores = [score(drawn(seed), metrics="modularity")["modularity"].score for seed in range(200)]
    cards = [score(drawn(seed), metrics="modularity", confidence=(0.95, 40)) for seed in range(40)]
    found = [card.scored["modularity"].intervals for card in cards]
    deviations = [each.values["score"].deviation for each in found if each is not None]
    assert len(deviations) == 40
    assert 0.8 < np.sqrt(np.mean(np.square(deviations))) / np.std(scores, ddof=1) < 1.45


def of_groups(n_groups: int, n_rows: int, rng: np.random.Generator, noise: float = 1.0) -> Representation:
    """Factors and codes with an effect of each group."""
    groups = np.repeat(np.arange(n_groups), n_rows)
    values = rng.standard_normal((n_groups, 2))[groups] + rng.standard_normal((len(groups), 2))
    factors = np.clip(np.rint(values + 2), 0, 4)
    strays = rng.standard_normal((n_groups, 2))[groups] + rng.standard_normal((len(groups), 2))
    return Representation(factors + noise * strays, factors, kinds=("ordinal",) * 2, groups=groups)


@pytest.mark.parametrize(("n_groups", "n_rows"), [(10, 20), (10, 30), (40, 20), (45, 30), (150, 20)])
def test_subsets_are_disjoint_and_of_as_many_groups_and_rows(n_groups: int, n_rows: int) -> None:
    rng = np.random.default_rng(0)
    many = of_groups(n_groups, n_rows, rng)
    subsets = subsets_of_groups({"few": of_groups(10, 20, rng), "many": many}, 0)
    assert [rows.tolist() for rows in subsets["few"]] == [list(range(200))]
    assert len(subsets["many"]) == min(10, n_groups // 10)
    assert many.groups is not None
    counts = [np.bincount(many.groups[rows], minlength=n_groups) for rows in subsets["many"]]
    for each in counts:
        assert sorted(each) == [0] * (n_groups - 10) + [20] * 10
    assert np.sum(counts, axis=0).max() == 20, "no group is in two subsets"


@pytest.mark.lengthy
def test_compare_is_fair_to_models_of_unequal_numbers_of_groups() -> None:
    low, n_subsets = 0, set()
    for seed in range(25):
        rng = np.random.default_rng(seed)
        models = {"few": of_groups(10, 20, rng), "many": of_groups(40, 20, rng)}
        found = unbraid.compare(models, metrics="mig", confidence=(0.95, 10))
        low += found.differences[0].p <= 0.05
        n_subsets.add(found.compared["many"].n_subsets)
        assert any("on 4 disjoint subsets of 10 of its 40 groups, 200 of" in note for note in found.notes)
    assert n_subsets == {4}
    assert low <= 4
    rng = np.random.default_rng(0)
    better = {"few": of_groups(12, 30, rng, 0.1), "many": of_groups(40, 50, rng, 1.5)}
    decided = unbraid.compare(better, metrics="mig", confidence=(0.95, 10))
    assert decided.differences[0].better == "few"


def test_compare_parts_by_groups_and_refuses_others() -> None:
    other = Representation(CODES[:, ::-1], FACTORS, groups=GROUPS, names=HELD.names)
    found = unbraid.compare({"a": HELD, "b": other}, metrics="mig", confidence=(0.95, 10))
    assert found.paired
    without = Representation(CODES, FACTORS, names=HELD.names)
    with pytest.raises(ValueError, match="b has no groups of rows, which a has; give both, or neither"):
        unbraid.compare({"a": HELD, "b": without}, metrics="mig", confidence=(0.95, 10))
    elsewhere = Representation(CODES, FACTORS, names=HELD.names, groups=np.arange(len(GROUPS)) % 20)
    with pytest.raises(ValueError, match="the groups of rows of b are not those of a, though the rows are"):
        unbraid.compare({"a": HELD, "b": elsewhere}, metrics="mig", confidence=(0.95, 10))
    few = HELD.keep_rows(np.flatnonzero(GROUPS < 5))
    with pytest.raises(ValueError, match="a: intervals need 10 groups"):
        unbraid.compare({"a": few, "b": few}, metrics="mig")


def told(held: Representation, *, null: bool = True, confidence: bool = False) -> str:
    return " ".join(note_on_neighbours(held, null=null, confidence=confidence))


def test_what_goes_around_is_a_point_on_a_circle_and_each_level_of_a_class_a_column() -> None:
    quarters = np.arange(4.0)[:, None]
    (circle,) = _as_columns(Representation(CODES[:4], quarters, kinds=("cyclic",), sizes=(4,)))
    np.testing.assert_allclose(circle, [[1, 0], [0, 1], [-1, 0], [0, -1]], atol=1e-12)
    (levels,) = _as_columns(Representation(CODES[:4], quarters % 2, kinds=("categorical",)))
    assert levels.tolist() == [[1, 0], [0, 1]] * 2


@pytest.mark.parametrize(("correlation", "is_told"), [(0.24, False), (0.36, True)])
def test_neighbours_are_told_from_a_correlation_of_3_10_on(correlation: float, is_told: bool) -> None:
    steps = np.random.default_rng(0).standard_normal((20_000, 3))
    rows = lfilter([1.0], [1.0, -correlation], steps, axis=0)
    held = Representation(rows[:, :2], rows[:, 2:], kinds=("continuous",))
    assert bool(told(held)) == is_told
    assert not told(held, null=False)
    assert "and intervals take rows as independent" in told(walks(0), null=False, confidence=True)


def test_neighbours_that_are_not_alike_are_not_told() -> None:
    for seed in range(20):
        held = walks(seed)
        assert not told(held.keep_rows(np.random.default_rng(seed).permutation(len(held))))
    assert not told(HELD)
    assert not told(Representation(walks(0).codes, RNG.integers(0, 3, (600, 1)))), "factors are not alike"
    assert not told(Representation(RNG.standard_normal((600, 4)), walks(0).factors)), "codes are not alike"


def test_rows_in_the_order_of_factors_are_told_only_where_codes_drift() -> None:
    grid = np.stack(np.unravel_index(np.arange(240), (4, 6, 10)), axis=1)
    assert in_order(grid)
    assert not told(Representation(grid + 0.01 * RNG.standard_normal(grid.shape), grid))
    classes = np.repeat(np.arange(5), 60)[:, None]
    codes = classes + 0.2 * RNG.standard_normal((300, 3))
    assert not told(Representation(codes, classes)), "what is left of the codes within a class is noise"
    assert told(Representation(codes + np.cumsum(0.3 * RNG.standard_normal((300, 3)), axis=0), classes))
    assert not in_order(np.array([[0, 0], [1, 1], [0, 1]]))


def test_a_function_of_ones_own_gets_groups_or_is_told_of(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    (tmp_path / "of_mine.py").write_text(
        "def counts(codes, factors, groups=None):\n    return float(groups.max())\n"
        "def blind(codes, factors):\n    return 1.0\n",
        encoding="utf-8",
    )
    monkeypatch.syspath_prepend(tmp_path)
    card = score(HELD, metrics=["of_mine:counts", "of_mine:blind"])
    assert card["of_mine:counts"].score == 19
    assert [note for note in card.notes if "takes no groups" in note] == [
        "of_mine:blind takes no groups of rows: what it trains may be tested on groups that it was trained on"
    ]


def test_a_group_of_one_model_has_a_mean_and_no_deviation() -> None:
    cards = {name: score(CODES, FACTORS, metrics="mig", seed=seed) for seed, name in enumerate("abc")}
    alone, both = group_rows(cards, ["x", "y", "y"]).records
    assert [alone[key] for key in alone if "sd" in key or "deviation" in key] == [None]
    assert [both[key] for key in both if "sd" in key or "deviation" in key] == [0.0]


def test_groups_are_sorted_by_the_metric_that_is_named() -> None:
    rng = np.random.default_rng(0)
    cards = {
        name: score(CODES + noise * rng.standard_normal(CODES.shape), FACTORS, metrics=["mig", "mcc"])
        for name, noise in (("a", 1.0), ("b", 0.1), ("c", 3.0))
    }
    for metric in ("mig", "mcc"):
        means = [row[metric] for row in group_rows(cards, list("xyz"), sort=metric).records]
        assert means == sorted(means, reverse=True)


def repeated(seed: int, times: int = 5) -> Representation:
    """60 rows of noise, several times each: oversampled, so that equal rows lie in halves of the rows."""
    rng = np.random.default_rng(seed)
    factors = np.stack([rng.integers(0, 3, 60), rng.integers(0, 4, 60)], axis=1)
    return Representation(
        np.tile(rng.standard_normal((60, 4)), (times, 1)), np.tile(factors, (times, 1)), kinds=("ordinal",) * 2
    )


def test_equal_rows_are_one_group_and_it_is_said_once() -> None:
    """Row by row, noise repeated five times was significant in 48 (mig), 34 (sap) and 38 (r2) of 60 sets."""
    cards = [score(repeated(seed), metrics=["mig", "r2"], null=19) for seed in range(8)]
    for metric in ("mig", "r2"):
        nulls = [card.scored[metric].null for card in cards]
        assert sum(null is not None and null.p <= 0.05 for null in nulls) <= 1, "one in 20 is luck"
    card = cards[0]
    (note,) = [note for note in card.notes if "repeat" in note]
    assert note.startswith("240 of 300 rows repeat the codes and labels of another row; equal rows count as one group")
    held = card.representation
    assert held.groups is not None
    assert np.array_equal(held.groups[:60], held.groups[60:120])
    assert len(set(held.groups.tolist())) == 60


def test_an_interval_of_repeated_rows_is_that_of_the_rows_once() -> None:
    of_once, of_five = (
        score(repeated(0, times), metrics="r2", confidence=0.95).scored["r2"].intervals for times in (1, 5)
    )
    assert of_once is not None
    assert of_five is not None
    assert of_five.values["score"].deviation == pytest.approx(of_once.values["score"].deviation, rel=0.2)


@pytest.mark.parametrize("kind", ["whole", "few values", "grid", "unlike", "given groups"])
def test_rows_that_are_equal_for_another_reason_are_no_groups(kind: str) -> None:
    rng = np.random.default_rng(0)
    grid = np.tile(np.stack(np.meshgrid(np.arange(5), np.arange(6), indexing="ij"), -1).reshape(-1, 2), (20, 1))
    codes = {
        "whole": np.tile(np.arange(30), 20)[:, None],
        "few values": rng.choice([0.25, 0.5, 0.75], (600, 2)),
        "grid": grid / 7,
        "unlike": rng.standard_normal((600, 2)),
        "given groups": np.tile(rng.standard_normal((30, 2)), (20, 1)),
    }[kind]
    groups = np.arange(600) // 10 if kind == "given groups" else None
    given = Representation(codes.astype(float), grid, kinds=("ordinal",) * 2, groups=groups)
    assert with_repeats_as_groups(given) is given
