"""The scores of DRVI against the authors' package, plain loops and closed forms."""

from itertools import permutations

import numpy as np
import pytest
from sklearn.metrics import mutual_info_score

import unbraid
from unbraid.base.types import FloatArray, IntArray
from unbraid.metrics import METRICS, latent_matching
from unbraid.metrics.latent_matching import LatentMatching, latent_matching_of_noise
from unbraid.scoring.engine import inputs_of

RNG = np.random.default_rng(1)
LEVELS = RNG.integers(0, 3, 240)


def six(found: LatentMatching) -> list[float]:
    by_smi, by_spn = [found.score, found.msas_smi, found.msgs_smi], [found.lms_spn, found.msas_spn, found.msgs_spn]
    return by_smi + by_spn


def drawn_codes() -> dict[str, tuple[FloatArray, IntArray]]:
    rng = np.random.default_rng(0)
    levels = rng.integers(0, 4, 900)
    own = 2 * np.eye(4)[levels] + 0.3 * rng.standard_normal((900, 4))
    own = np.column_stack([own, rng.standard_normal((900, 2))])
    mixed = own @ rng.standard_normal((6, 6))
    one = np.column_stack([levels + 0.1 * rng.standard_normal(900), rng.standard_normal((900, 2))])
    rare = np.concatenate([np.repeat(np.arange(20), 10), np.full(1800, 20)])
    return {
        "own": (own, levels), "mixed": (mixed, levels), "one": (one, levels),
        "noise": (rng.standard_normal((2000, 128)), rare),
    }  # fmt: skip


# What DiscreteDisentanglementBenchmark of drvi-py 0.2.8 prints of them: LMS, MSAS and MSGS by SMI, then by SPN.
PRINTED = {
    "own": [0.9983781492196862, 0.9983781492196862, 0.8296612441572848, 1.0, 1.0, 0.8599980178522757],
    "mixed": [
        0.5230397863425991, 0.5825945379783048, 0.18564135554897176,
        0.5647913171615013, 0.6114911926285002, 0.17065342631470512,
    ],
    "one": [
        0.2588616173030969, 1.0000000000000002, 0.9820782312018683,
        0.25971424173413865, 1.0, 0.9851744389668422,
    ],
    "noise": [
        0.14745264625427193, 0.1479781155840707, 0.014045584432077934,
        0.10950412792586416, 0.10950412792586416, 0.010660592136621532,
    ],
}  # fmt: skip


@pytest.mark.parametrize("name", PRINTED)
def test_the_authors_package_prints_the_same(name: str) -> None:
    codes, levels = drawn_codes()[name]
    assert six(latent_matching(codes, levels[:, None], kinds=["categorical"])) == pytest.approx(
        PRINTED[name], abs=1e-12
    )


def by_hand(codes: FloatArray, levels: IntArray, bins: int) -> list[float]:
    """The definitions, of codes that never take a value twice."""
    classes, n = np.unique(levels), len(levels)
    smi, spn = np.zeros((2, codes.shape[1], len(classes)))
    for i, code in enumerate(codes.T):
        edges = np.linspace(code.min(), code.max(), bins + 1)[1:-1]
        ordered = levels[np.argsort(code)]
        for j, each in enumerate(classes):
            own = levels == each
            p = own.mean()
            smi[i, j] = mutual_info_score(np.digitize(code, edges), own) / -(p * np.log(p) + (1 - p) * np.log(1 - p))
            follow = sum(ordered[k] == each == ordered[k + 1] for k in range(n - 1)) / (own.sum() - 1)
            spn[i, j] = max(0.0, follow - p) / (1 - p)
    found = []
    for worth in (smi, spn):
        matched = max(
            np.mean([worth[i, j] for j, i in enumerate(order)])
            for order in permutations(range(len(worth)), len(classes))
        )
        ranked = np.sort(worth, axis=0)
        found += [float(matched), float(ranked[-1].mean()), float((ranked[-1] - ranked[-2]).mean())]
    return found


@pytest.mark.parametrize("bins", [3, 10, 25])
def test_the_definition_in_plain_loops(bins: int) -> None:
    codes = np.eye(3)[LEVELS][:, [2, 0, 1, 1]] + RNG.standard_normal((240, 4)) * [0.2, 0.5, 1.0, 2.0]
    assert six(latent_matching(codes, LEVELS[:, None], bins=bins)) == pytest.approx(by_hand(codes, LEVELS, bins))


def test_rows_of_one_value_count_by_the_mean_over_their_orders() -> None:
    """Of 2 and 3 rows with one value each: all 12 orders that keep the values in order."""
    code, levels = np.array([0.0, 0, 1, 1, 1]), np.array([0, 1, 0, 0, 1])
    follow = np.zeros(2)
    orders = [(*first, *then) for first in permutations([0, 1]) for then in permutations([2, 3, 4])]
    for order in orders:
        for one, other in zip(order, order[1:], strict=False):
            if levels[one] == levels[other]:
                follow[levels[one]] += 1 / len(orders)
    share = np.array([0.6, 0.4])
    expected = np.maximum(follow / [2, 1] - share, 0) / (1 - share)
    assert latent_matching(code[:, None], levels[:, None]).spn[0] == pytest.approx(expected)


def test_a_code_for_each_class_scores_1_and_one_for_all_of_them_a_share() -> None:
    found = latent_matching(np.eye(3)[LEVELS], LEVELS[:, None])
    assert (found.score, found.msas_smi) == pytest.approx((1.0, 1.0))
    other = RNG.integers(0, 4, 240)
    labels = np.column_stack([LEVELS, other])
    both = latent_matching(labels, labels)
    assert both.per_factor == pytest.approx([1 / 3, 1 / 4], abs=0.05)  # the other code tells a little by luck
    assert both.score == pytest.approx(both.per_factor.mean())
    assert both.msas_smi == pytest.approx(1.0)
    assert both.factor_of_class.tolist() == [0, 0, 0, 1, 1, 1, 1]
    by_luck = [both.smi.min(axis=0)[both.factor_of_class == factor].mean() for factor in (0, 1)]
    assert both.msgs_smi == pytest.approx(1 - np.mean(by_luck))


def test_factors_are_averaged() -> None:
    labels = np.column_stack([LEVELS, RNG.integers(0, 2, 240)])
    codes = RNG.standard_normal((240, 5)) + labels[:, [0, 1, 0, 1, 0]]
    alone = [six(latent_matching(codes, labels[:, [column]])) for column in (0, 1)]
    assert six(latent_matching(codes, labels)) == pytest.approx(np.mean(alone, axis=0))


def test_two_rows_of_a_class_have_one_place_to_follow_each_other() -> None:
    found = latent_matching(np.arange(10.0)[:, None], np.repeat([0, 1, 2], [4, 2, 4])[:, None])
    assert found.spn[0] == pytest.approx([1.0, 1.0, 1.0])


def test_a_class_of_one_row_and_a_single_code_are_told() -> None:
    levels = np.append(np.zeros(20), [1, 1, 1, 2]).astype(int)
    found = latent_matching(RNG.standard_normal((24, 1)), levels[:, None])
    assert found.spn[0, 2] == 0
    assert found.msgs_smi == pytest.approx(found.msas_smi)
    assert [note.partition(" ")[0] for note in found.notes] == ["factor", "factor", "one"]
    assert "classes of one row" in found.notes[1]


def test_what_noise_scores_by_many_codes_and_rare_classes_is_said_beforehand() -> None:
    codes, rare = drawn_codes()["noise"]
    held = unbraid.Representation(codes, rare[:, None], kinds=("categorical",))
    said = latent_matching_of_noise(inputs_of(held))
    scores = [latent_matching(codes[RNG.permutation(2000)], rare[:, None]).score for _ in range(4)]
    assert said.score == pytest.approx(np.mean(scores), abs=4 * np.std(scores, ddof=1) / np.sqrt(4) + said.spread)
    assert 0.13 < said.score < 0.16
    few = unbraid.Representation(codes[:, :16], rare[:, None], kinds=("categorical",))
    card = unbraid.score(few, metrics="latent_matching", null=19)
    null = card.scored["latent_matching"].null
    assert null is not None
    assert null.p > 0.05
    assert METRICS["latent_matching"].direction("lms_spn")
