"""NK against the cases that it exists for, and against what a perceptron of PyTorch learns."""

import threading
from typing import Any

import numpy as np
import pytest
from threadpoolctl import threadpool_limits

from tests.examples import entangled_codes, grid_factors, perfect_codes, rotated_codes
from tests.metrics.test_snc import toy_model
from unbraid.base.types import FloatArray, IntArray
from unbraid.metrics import METRICS, explicitness, linear_accuracy, mlp_accuracy, nk, snc
from unbraid.metrics._shared import probes
from unbraid.metrics._shared.information import binned_information
from unbraid.metrics._shared.inputs import check_inputs
from unbraid.metrics._shared.probes import perceptrons
from unbraid.metrics._shared.sharing import sharing
from unbraid.metrics._shared.train_test_split import accuracies, guessing, train_test_split


def xor_codes(n_factors: int, n_samples: int = 1500) -> tuple[FloatArray, IntArray]:
    """Each factor is the XOR of two binary codes of its own, so that one code alone tells nothing."""
    bits = np.random.default_rng(0).integers(0, 2, (n_samples, 2 * n_factors))
    return bits.astype(float), bits[:, ::2] ^ bits[:, 1::2]


@pytest.mark.parametrize("n_factors", [1, 3])
def test_a_factor_that_is_the_xor_of_two_codes_is_lost_without_one(n_factors: int) -> None:
    codes, factors = xor_codes(n_factors)
    result = nk(codes, factors)
    np.testing.assert_array_equal(result.accuracy, 1.0)
    np.testing.assert_allclose(result.knocked_out_accuracy, 0.5, atol=0.08)
    np.testing.assert_array_equal(result.alignment // 2, np.arange(n_factors))
    assert result.score > 0.85
    assert result.drop == pytest.approx(0.5, abs=0.06)
    assert "shuffling lowers" in result.notes[-1]


def two_digit_codes() -> tuple[FloatArray, IntArray]:
    """Theorem 3.1: g_i = (coarse digit of z_i) + (fine digit of the next code), mod k = 2."""
    coarse, fine = np.random.default_rng(0).integers(0, 2, (2, 3000, 4))
    return (coarse + (fine + 0.5) / 2) / 2, (coarse + np.roll(fine, -1, axis=1)) % 2


@pytest.mark.parametrize(("training", "epochs", "fewer"), [("annealed", "EPOCHS", 3), ("paper", "EPOCHS_OF_PAPER", 10)])
def test_fewer_epochs_would_not_learn_it(
    training: probes.Training, epochs: str, fewer: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    rows = train_test_split(*two_digit_codes(), None, 0)
    assert accuracies(perceptrons(rows, 0, training).predicted, rows).min() > 0.98
    monkeypatch.setattr(probes, epochs, fewer)
    assert accuracies(perceptrons(rows, 0, training).predicted, rows).max() < 0.75


def test_what_is_hard_to_learn_is_learnt_as_well_as_by_the_training_of_the_paper() -> None:
    """Two spirals, and the parity of three codes among six: far from a line, and few rows."""
    rng = np.random.default_rng(0)
    angle, arm = rng.uniform(0.5, 3.5, 4000) * np.pi, rng.integers(0, 2, 4000)
    spirals = np.stack([angle * np.cos(angle + arm * np.pi), angle * np.sin(angle + arm * np.pi)], axis=1)
    spirals = np.hstack([spirals + rng.normal(0, 0.1, spirals.shape), rng.normal(size=(4000, 4))])
    noise = rng.normal(size=(2000, 6))
    for codes, factors in ((spirals, arm[:, None]), (noise, (noise[:, :3] > 0).sum(axis=1)[:, None] % 2)):
        annealed, paper = (mlp_accuracy(codes, factors, training=each).accuracy[0] for each in ("annealed", "paper"))
        assert annealed > max(0.8, paper - 0.02)


def test_theorem_3_1() -> None:
    """No code tells anything and two tell everything: SNC is about 0, NK about 1."""
    codes, factors = two_digit_codes()
    assert nk(codes, factors).score > 0.85
    assert snc(codes, factors).score < 0.06


@pytest.mark.parametrize("second", ["noise", "shape"])
def test_table_1_of_the_paper(second: str) -> None:
    """NK is 12.5 for both models: 25 for the factor that loses z1, 0 for the other."""
    codes, factors = toy_model(second)
    result = nk(codes, factors, test_codes=codes, test_factors=factors)
    np.testing.assert_allclose(result.accuracy, 0.75)
    assert sorted(result.knocked_out_accuracy) == pytest.approx([0.5, 0.75])
    assert result.drop == pytest.approx(0.125)
    assert result.score == pytest.approx(0.25)


def test_the_drop_may_be_negative() -> None:
    """Noise: a perceptron without one of the codes is right as often as not by more rows."""
    rng = np.random.default_rng(0)
    results = [nk(rng.standard_normal((60, 3)), rng.integers(0, 2, (60, 1)), seed=seed) for seed in range(4)]
    for result in results:
        assert result.drop == pytest.approx((result.accuracy - result.knocked_out_accuracy).mean())
    assert min(result.drop for result in results) < 0


@pytest.mark.parametrize("n_inputs", [9, 100])
def test_weights_start_within_one_over_the_root_of_the_inputs(n_inputs: int) -> None:
    """As in PyTorch: 1 / 3 and 1 / 10 for the first layer, 1 / 16 for the second, which has 256 inputs."""
    weights = probes._initial_state(np.random.default_rng(0), n_inputs, 4, n_inputs)[0]
    first = weights[: -(-(n_inputs + 1) // 4) * 4 * 256].reshape(-1, 256)[: n_inputs + 1]
    second, biases = weights[len(weights) - 4 * 256 - 4 : -4], weights[-4:]
    for part, bound, least in ((first, 1 / np.sqrt(n_inputs), 0.98), (second, 1 / 16, 0.98), (biases, 1 / 16, 0.3)):
        assert least * bound < np.abs(part).max() <= bound * (1 + 1e-6)


def test_what_two_codes_tell_alike_is_not_lost_without_one() -> None:
    factors = grid_factors(8)
    codes = perfect_codes(factors)
    result = nk(np.column_stack([codes, codes]), factors)
    np.testing.assert_allclose(result.accuracy, 1.0)
    assert result.score == pytest.approx(0.0, abs=1e-12)


def test_knockout_equals_a_perceptron_that_never_saw_the_code() -> None:
    """Perfect codes: without its own code a factor is guessed, and the others keep theirs."""
    factors = grid_factors(8)
    result = nk(perfect_codes(factors), factors)
    assert result.alignment.tolist() == [2, 1, 0]
    np.testing.assert_allclose(result.knocked_out_accuracy, [1 / 3, 1 / 4, 1 / 8], atol=0.14)
    assert result.score > 0.85


def test_test_rows_do_not_decide_the_alignment() -> None:
    """On test rows, and by them on all rows, it is the second code that tells the factor."""
    rng = np.random.default_rng(0)
    factors = rng.integers(0, 4, (500, 1))
    codes = factors + rng.standard_normal((500, 2)) * [1.0, 1.2]
    test = train_test_split(codes, factors, None, 0).test
    codes[test, 0], codes[test, 1] = rng.standard_normal(len(test)), factors[test, 0]
    information = binned_information(check_inputs(codes, factors))[:, 0]
    assert information[1] > information[0] + 0.05
    assert nk(codes, factors).alignment.tolist() == [0]


def test_what_a_head_without_the_code_scores_by_the_commonest_level_is_noted() -> None:
    """A code that tells a factor of shares .8 and .2: without it the head is right .8 of the time."""
    factors = (np.random.default_rng(0).random((1000, 1)) < 0.2).astype(int)
    codes = np.column_stack([factors, np.random.default_rng(1).standard_normal(1000)])
    by_guessing, by_commonest = nk(codes, factors), nk(codes, factors, chance="commonest")
    assert by_commonest.score == pytest.approx(1.0, abs=0.05)
    assert by_guessing.score == pytest.approx(0.2 / 0.32, abs=0.05)
    assert "factor 0: always naming the commonest level scores" in by_guessing.notes[0]


def test_one_code_and_no_code_left() -> None:
    factors = grid_factors(4)
    result = nk(perfect_codes(factors)[:, :1], factors)
    assert result.alignment.tolist() == [-1, -1, 0]
    assert result.per_factor[:2].tolist() == [0.0, 0.0]
    assert result.per_factor[2] > 0.8
    assert sum("no code of its own" in note for note in result.notes) == 2


@pytest.mark.lengthy
@pytest.mark.parametrize("training", ["annealed", "paper"])
@pytest.mark.parametrize(("seeds", "near"), [((0,), 0.03), pytest.param((0, 1, 2), 0.02, marks=pytest.mark.slow)])
def test_perceptrons_learn_what_those_of_torch_learn(
    seeds: tuple[int, ...], near: float, training: probes.Training
) -> None:
    torch = pytest.importorskip("torch")
    factors = grid_factors()
    codes = rotated_codes(factors, noise=0.4)
    own, peer = [], []
    for seed in seeds:
        rows = train_test_split(codes, factors, None, seed)
        own.append(accuracies(perceptrons(rows, seed, training).predicted, rows)[2])
        standard = torch.tensor(probes.standardised_codes(rows), dtype=torch.float32)
        labels = torch.tensor(rows.levels.levels[:, 2])
        torch.manual_seed(seed)
        head = torch.nn.Sequential(torch.nn.Linear(3, 256), torch.nn.ReLU(), torch.nn.Linear(256, 8))
        optimizer = torch.optim.Adam(head.parameters(), fused=True)
        rates = [1e-3] * 75 if training == "paper" else np.linspace(0.01, 0, 41)[1::2]  # middles of 20 parts
        for rate in rates:
            optimizer.param_groups[0]["lr"] = float(rate)
            for batch in torch.tensor(np.random.default_rng(seed).permutation(rows.train)).split(64):
                optimizer.zero_grad()
                torch.nn.functional.cross_entropy(head(standard[batch]), labels[batch]).backward()
                optimizer.step()
        held = torch.tensor(rows.test)  # a copy: shared rows are read-only
        with torch.no_grad():
            peer.append(float((head(standard[held]).argmax(dim=1) == labels[held]).float().mean()))
    assert np.mean(own) == pytest.approx(np.mean(peer), abs=near)
    assert 0.3 < np.mean(peer) < 0.9


def test_a_score_card_trains_the_perceptrons_on_all_codes_once(monkeypatch: pytest.MonkeyPatch) -> None:
    codes, factors = entangled_codes(grid_factors(2)), grid_factors(2)
    trained = []
    train = probes._train
    monkeypatch.setattr(probes, "_train", lambda *args: trained.append(args[3]) or train(*args))
    with sharing():
        together = nk(codes, factors), mlp_accuracy(codes, factors)
    assert len(trained) == 2
    assert sum(max(lacking) < 0 for lacking in trained) == 1
    np.testing.assert_array_equal(together[0].accuracy, together[1].accuracy)
    assert mlp_accuracy(codes, factors).score == together[1].score


@pytest.mark.parametrize("metric", [nk, mlp_accuracy, linear_accuracy, explicitness, snc])
def test_threads_change_nothing(metric) -> None:
    codes, factors = entangled_codes(grid_factors(4)), grid_factors(4)
    scores = []
    for threads in (1, 2):
        with threadpool_limits(threads):
            scores.append(metric(codes, factors).score)
    assert scores[0] == scores[1]


def test_seeds_differ_by_no_more_than_the_table_says() -> None:
    """The rows held out stay the same, so that only weights and batches vary."""
    factors = grid_factors()
    codes = entangled_codes(factors)
    rows = train_test_split(codes, factors, None, 0)
    spread = [accuracies(perceptrons(rows, seed, "annealed").predicted, rows).mean() for seed in range(4)]
    assert 0 < np.ptp(spread) < METRICS["mlp_accuracy"].tolerance * 1.5


def learnt(codes: FloatArray, factors: IntArray) -> tuple[list[bool], FloatArray, FloatArray]:
    """Which perceptrons were trained in full, their accuracies, and those of guessing."""
    rows = train_test_split(codes, factors, None, 0)
    heads = of_all_codes(codes, factors)
    return [each is not None for each in heads.parameters], accuracies(heads.predicted, rows), guessing(rows)


def of_all_codes(codes: FloatArray, factors: IntArray) -> probes.Perceptrons:
    return probes.perceptrons(train_test_split(codes, factors, None, 0), 0, "annealed")


def test_levels_are_guessed_where_a_perceptron_learns_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    """What it learns is as before to the bit."""
    rng = np.random.default_rng(0)
    signs = rng.integers(0, 2, (9000, 4))
    parity = signs[:, :3].sum(axis=1) % 2  # no two codes tell anything of it
    factors = np.stack([signs[:, 0], parity, rng.integers(0, 30, 9000)], axis=1)
    codes = np.hstack([signs + rng.normal(0, 0.1, signs.shape), rng.normal(size=(9000, 24))])
    trained, accuracy, blind = learnt(codes, factors)
    assert trained == [True, True, False]
    assert accuracy[:2].min() > 0.99
    assert accuracy[2] == pytest.approx(blind[2], abs=4 * np.sqrt(blind[2] * (1 - blind[2]) / 1800))
    heads = of_all_codes(codes, factors).parameters
    monkeypatch.setattr(probes, "SAVING", np.inf)
    always = of_all_codes(codes, factors).parameters
    assert always[2] is not None
    for told, as_before in zip(heads[:2], always[:2], strict=True):
        np.testing.assert_array_equal(told, as_before)


def test_the_parity_of_three_codes_among_thirty_is_learnt() -> None:
    """A perceptron needs hundreds of steps before it foretells the level better than the shares of the levels do."""
    codes = np.random.default_rng(0).normal(size=(10_000, 30))
    factors = (codes[:, :3] > 0).sum(axis=1)[:, None] % 2
    trained, accuracy, _ = learnt(codes, factors)
    assert trained == [True]
    assert accuracy[0] > 0.8


def test_what_only_the_knocked_out_code_tells_is_guessed_without_it(monkeypatch: pytest.MonkeyPatch) -> None:
    """The short training does not see that code either, nor do the rows that it is asked about."""
    epoch, probabilities, hidden = probes.perceptron_epoch, probes._probabilities, list[int]()

    def trained(*given: Any) -> int:
        hidden.append(given[3])
        return epoch(*given)

    def asked(inputs: FloatArray, *given: Any) -> FloatArray:
        assert not inputs[:, hidden[-1]].any()
        return probabilities(inputs, *given)

    monkeypatch.setattr(probes, "perceptron_epoch", trained)
    monkeypatch.setattr(probes, "_probabilities", asked)
    monkeypatch.setattr(probes, "at_once", lambda work, tasks, _: [work(task, threading.Event()) for task in tasks])
    rng = np.random.default_rng(0)
    levels = rng.integers(0, 30, (9000, 2))
    codes = np.hstack([levels, levels[:, 1:], np.zeros((9000, 5))]) + rng.normal(0, 0.1, (9000, 8))
    rows = train_test_split(codes, levels, None, 0)
    order = probes.live_codes(rows)[0].tolist()
    heads = probes.knocked_out_perceptrons(rows, 0, "annealed", (0, 1), (True, True))
    assert heads.knocked_out == (order.index(0), order.index(1))
    assert [each is not None for each in heads.parameters] == [False, True]
    lacking, doubled = accuracies(heads.predicted, rows)
    assert lacking == pytest.approx(1 / 30, abs=0.03)
    assert doubled > 0.7
    assert set(hidden) == set(heads.knocked_out)


def test_shuffled_rows_are_not_all_guessed_alike() -> None:
    """Guesses are right as often as n draws are: a mean of p, and a spread of the root of p (1 - p) / n."""
    rng = np.random.default_rng(0)
    codes, levels = rng.normal(size=(9000, 1)), rng.permutation(np.arange(9000) % 30)[:, None]
    found = [learnt(codes[rng.permutation(9000)], levels) for _ in range(12)]
    assert not any(trained[0] for trained, _, _ in found)
    accuracy = np.array([accuracy[0] for _, accuracy, _ in found])
    spread = np.sqrt(1 / 30 * 29 / 30 / 1800)
    assert accuracy.mean() == pytest.approx(1 / 30, abs=4 * spread / np.sqrt(12))
    assert 0.4 * spread < accuracy.std(ddof=1) < 1.8 * spread


def test_what_all_codes_do_not_tell_is_guessed_without_one_of_them(monkeypatch: pytest.MonkeyPatch) -> None:
    """Even where the short training without it would go on by luck; and all codes are looked at once."""
    looked = list[int]()

    def worth(_inputs: FloatArray, _labels: IntArray, _rows: IntArray, hidden: int, size: int, *_: Any) -> bool:
        looked.append(hidden)
        return hidden >= 0 or size == 2

    monkeypatch.setattr(probes, "_worth_training", worth)
    rng = np.random.default_rng(0)
    levels = np.stack([rng.integers(0, 2, 400), rng.integers(0, 3, 400)], axis=1)
    found = nk(levels + rng.normal(0, 0.1, (400, 2)), levels)
    assert [each < 0 for each in looked] == [True, True, False], "of the second factor all codes told nothing"
    assert found.accuracy[0] > 0.99
    guessing = 1 / 3
    assert [found.accuracy[1], found.knocked_out_accuracy[1]] == pytest.approx([guessing, guessing], abs=0.2)


def test_few_rows_and_uneven_levels_are_always_trained(monkeypatch: pytest.MonkeyPatch) -> None:
    """A short training would save little, hardly learn, or not tell how often a perceptron on noise is right."""
    rng = np.random.default_rng(0)
    many, noise = rng.normal(size=(9000, 8)), rng.integers(0, 30, (9000, 1))
    assert learnt(many, noise)[0] == [False]
    assert learnt(many[:2000], noise[:2000])[0] == [True]
    with monkeypatch.context() as fewer:
        fewer.setattr(probes, "PER_CODE", 601)  # 7 200 rows for 12 inputs, with the bias and three of padding
        assert learnt(many, noise)[0] == [True]
    uneven = (rng.random((9000, 1)) < 0.3).astype(int)
    trained, accuracy, blind = learnt(many, uneven)
    assert trained == [True]
    assert accuracy[0] > blind[0] + 0.1  # .7 by the commonest, .58 by guessing


def test_a_short_perceptron_gives_the_probabilities_of_torch() -> None:
    """For the weights as they lie: 5 codes, the bias and padding; then 7 levels and padding."""
    torch = pytest.importorskip("torch")
    rng = np.random.default_rng(0)
    inputs = np.zeros((30, 8), dtype=np.float32)
    inputs[:, :5], inputs[:, 5] = rng.normal(size=(30, 5)), 1.0
    parameters = probes._initial_state(rng, 5, 7, 5)[0]
    weights = torch.tensor(parameters)
    first, second = weights[: 8 * 256].reshape(8, 256), weights[8 * 256 : 16 * 256].reshape(8, 256)
    logits = torch.relu(torch.tensor(inputs) @ first) @ second.T + weights[16 * 256 :]
    np.testing.assert_allclose(
        probes._probabilities(inputs, 7, parameters), torch.softmax(logits[:, :7], dim=1), rtol=1e-5
    )


def test_noise_goes_along_with_levels_by_a_standard_normal_deviate_however_sure_it_is() -> None:
    rng = np.random.default_rng(0)
    sure = rng.dirichlet([0.1, 0.2, 0.1, 0.05], 400)
    levels = rng.choice(4, (500, 400), p=[0.4, 0.3, 0.2, 0.1])
    of_noise = np.array([probes._going_along(sure, each) for each in levels])
    assert of_noise.mean() == pytest.approx(0.0, abs=4 / np.sqrt(500))
    assert of_noise.std() == pytest.approx(1.0, abs=0.15)
    assert 0.005 < (of_noise > probes.TELLING).mean() < 0.05
    # By hand: of levels 0, 0, 1 the shares are 2/3 and 1/3; the centred rows are .3, -.1 and -.2 for level 0.
    probabilities, three = np.array([[0.9, 0.1], [0.5, 0.5], [0.4, 0.6]]), np.array([0, 0, 1])
    above = np.array([0.3 * 2 / 3, -0.1 * 2 / 3, 0.2 * 4 / 3])
    assert probes._going_along(probabilities, three) == pytest.approx(above.mean() / (above.std() / np.sqrt(3)))
    assert probes._going_along(np.full((3, 2), 0.5), three) == 0.0
