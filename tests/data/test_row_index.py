"""Rows of two objects that both name theirs are matched by the names, and not by where they stand."""

import re
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import unbraid
from tests.examples import SPACE, grid_factors, noisy_codes
from unbraid.data import Representation
from unbraid.metrics import elbo_terms, mig, mig_exact, udr, wide_scores, wide_udr

pandas = pytest.importorskip("pandas")

FACTORS = grid_factors(2)
CODES = noisy_codes(FACTORS)
N = len(FACTORS)
CELLS = [f"cell {place}" for place in range(N)]
ORDER = np.random.default_rng(0).permutation(N)
FRAME = pandas.DataFrame(CODES, index=CELLS, columns=["a", "b", "c"])
LABELS = pandas.DataFrame(FACTORS, index=CELLS, columns=list(SPACE.names))
MOVED = int((np.arange(N) != ORDER).sum())
NOTE = f"rows of {{}} were matched to those of codes by their index; {MOVED} of {N} stood in another order"
SCORE = mig(CODES, FACTORS).score


def card_of(codes: Any, factors: Any, **more: Any) -> unbraid.ScoreCard:
    return unbraid.score(codes, factors, metrics=["mig"], **more)


def test_labels_in_another_order_are_matched_by_their_index() -> None:
    card = card_of(FRAME, LABELS.iloc[ORDER])
    assert card["mig"].score == SCORE
    assert card.notes[0] == NOTE.format("factors")
    assert card_of(CODES, FACTORS[ORDER])["mig"].score < SCORE / 2


def test_a_note_is_made_only_where_something_stood_in_another_order() -> None:
    for codes, factors in ((FRAME, LABELS), (FRAME.iloc[ORDER], LABELS.iloc[ORDER]), (FRAME, FACTORS), (CODES, LABELS)):
        card = card_of(codes, factors)
        assert card["mig"].score == SCORE or codes is not FRAME
        assert not [note for note in card.notes if "matched" in note]


def test_each_argument_that_has_rows_is_matched() -> None:
    rng = np.random.default_rng(1)
    spread = pandas.DataFrame(rng.uniform(-3, -1, CODES.shape), index=CELLS)
    weights, gap = pandas.Series(rng.integers(1, 5, N), index=CELLS), pandas.Series(FACTORS[:, 1:].sum(1) > 6, CELLS)
    wanted = ["mig", "mig_exact", "zero_shot"]
    straight = unbraid.score(FRAME, LABELS, metrics=wanted, log_variances=spread, held_out=gap)
    moved = unbraid.score(FRAME, LABELS, metrics=wanted, log_variances=spread.iloc[ORDER], held_out=gap.iloc[ORDER])
    assert [moved[name].score for name in wanted] == [straight[name].score for name in wanted]
    assert [NOTE.format(name) in moved.notes for name in ("log_variances", "held_out")] == [True, True]
    weighted = card_of(FRAME, LABELS, weights=weights)
    assert card_of(FRAME, LABELS, weights=weights.iloc[ORDER])["mig"].score == weighted["mig"].score
    beside = card_of(FRAME, LABELS, baselines={"same": FRAME.iloc[ORDER]}).scored["mig"]
    assert beside.baselines == {"same": beside.headline}


def test_columns_by_name_are_matched_each() -> None:
    columns = {name: LABELS[name].iloc[np.roll(ORDER, k)] for k, name in enumerate(LABELS)}
    assert card_of(FRAME, columns)["mig"].score == SCORE
    among = card_of(CODES[ORDER], columns)  # the first column is in the order of the codes
    assert among["mig"].score == pytest.approx(SCORE)
    assert among.notes[0].startswith("rows of factors were matched to those of factors['shape'] by their index")


@pytest.mark.parametrize("make", [Representation.of, Representation])
def test_a_representation_matches_its_rows(make: Callable[..., Representation]) -> None:
    rng = np.random.default_rng(1)
    spread, weights = rng.normal(size=CODES.shape), rng.uniform(1, 2, N)
    held = make(
        FRAME, LABELS.iloc[ORDER], log_variances=pandas.DataFrame(spread, CELLS).iloc[ORDER],
        weights=pandas.Series(weights, CELLS).iloc[ORDER],
    )  # fmt: skip
    np.testing.assert_array_equal(held.factors, FACTORS)
    np.testing.assert_array_equal(held.log_variances, spread)
    np.testing.assert_array_equal(held.weights, weights)
    assert len([note for note in held.notes if "stood in another order" in note]) == 3


def test_other_rows_are_refused_in_one_line() -> None:
    said = (
        "codes and factors name different rows by their index: 1 of codes is missing in factors ('cell 0') and 4 of "
        "factors are missing in codes ('x', 'y', 'z', ...); give both with .loc[common], common = "
        "codes.index.intersection(factors.index), or give both with .reset_index(drop=True) to match rows by position"
    )
    others = pandas.concat([LABELS.iloc[1:], LABELS.iloc[:4].set_axis(list("xyzw"))])
    for call in (card_of, Representation, mig):
        with pytest.raises(ValueError, match=f"^{re.escape(said)}$"):
            call(FRAME, others)


def test_names_that_come_twice_are_refused_unless_both_have_the_same_order() -> None:
    twice = [*CELLS[:-1], CELLS[0]]
    codes, labels = FRAME.set_axis(twice), LABELS.set_axis(twice)
    assert card_of(codes, labels)["mig"].score == SCORE
    with pytest.raises(ValueError, match="codes names the row 'cell 0' twice by their index"):
        card_of(codes, labels.iloc[::-1])


def test_numbers_in_another_order_are_an_index_and_counting_is_none() -> None:
    codes, labels = FRAME.reset_index(drop=True), LABELS.reset_index(drop=True)
    assert card_of(codes.iloc[ORDER], labels.iloc[ORDER[::-1]])["mig"].score == pytest.approx(SCORE)
    assert not [note for note in card_of(codes, labels).notes if "matched" in note]
    card = card_of(codes, labels.iloc[ORDER])  # as codes that were made of shuffled images are
    assert card["mig"].score == card_of(CODES, FACTORS[ORDER])["mig"].score
    assert card.notes[0] == (
        "rows were matched by position: codes count theirs from 0, and factors has the same numbers in another order; "
        "factors.sort_index() matches rows by number"
    )


def test_a_key_names_the_rows_of_frames_without_index() -> None:
    polars = pytest.importorskip("polars")
    codes = polars.DataFrame({**dict(zip("abc", CODES.T, strict=True)), "cell": CELLS})
    labels = polars.DataFrame(FACTORS, list(SPACE.names)).with_columns(cell=polars.Series(CELLS))[ORDER]
    by_index = LABELS.iloc[ORDER].rename_axis("cell")
    for factors in (labels, labels.to_dict(as_series=False), labels.to_arrow(), by_index.reset_index(), by_index):
        card = card_of(codes, factors, key="cell")
        assert card["mig"].score == SCORE
        assert card.notes[0].startswith("rows of factors were matched to those of codes by 'cell'; ")
        assert (card.representation.code_names, card.representation.names) == (("a", "b", "c"), SPACE.names)
    assert Representation.of(codes, labels, key="cell").notes[0].endswith(" stood in another order")
    with pytest.raises(ValueError, match="factors must be a frame or a mapping with a column 'cell'"):
        card_of(codes, FACTORS, key="cell")
    with pytest.raises(ValueError, match="codes and factors name different rows by 'cell': 1 of codes is missing"):
        card_of(codes, labels[1:], key="cell")
    with pytest.raises(ValueError, match="key is for frames"):
        unbraid.score(Representation(CODES, FACTORS), key="cell")


@pytest.mark.parametrize(
    "call",
    [
        lambda: mig(FRAME, LABELS.iloc[ORDER]),
        lambda: mig(FRAME, FACTORS, weights=pandas.Series(1.0, CELLS).iloc[ORDER]),
        lambda: wide_scores(FRAME, LABELS.iloc[ORDER]),
        lambda: mig_exact(FRAME, FACTORS, log_variances=FRAME.iloc[ORDER]),
        lambda: elbo_terms(FRAME, log_variances=FRAME.iloc[ORDER]),
        lambda: unbraid.metrics.linear_accuracy(CODES, FACTORS, test_codes=FRAME, test_factors=LABELS.iloc[ORDER]),
        lambda: udr([FRAME, FRAME.iloc[ORDER]]),
        lambda: wide_udr([FRAME, FRAME.iloc[ORDER]]),
    ],
)
def test_a_metric_itself_refuses_another_order(call: Callable[[], Any]) -> None:
    with pytest.raises(ValueError, match="have the same index in another order; give .*unbraid.score matches them"):
        call()


def test_models_of_a_ranking_are_matched() -> None:
    found = unbraid.rank({"one": FRAME, "same": FRAME.iloc[ORDER]}, similarity="spearman")
    straight = unbraid.rank({"one": FRAME, "same": FRAME}, similarity="spearman")
    np.testing.assert_array_equal(found.scores, straight.scores)
    assert f"rows of same were matched to those of one by their index; {MOVED} of {N} stood in another order" in (
        found.notes
    )
