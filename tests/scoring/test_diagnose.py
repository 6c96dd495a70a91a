"""Which factors are in the codes, where, and what is wrong."""

import json

import numpy as np
import pytest
import scipy.sparse
from scipy.stats import norm
from sklearn.datasets import load_wine
from sklearn.discriminant_analysis import LinearDiscriminantAnalysis
from sklearn.linear_model import Ridge
from sklearn.metrics import balanced_accuracy_score, r2_score
from sklearn.preprocessing import StandardScaler

import unbraid
from unbraid.scoring.code_choice import best_pairs, ranks_of, relatedness, smallest_set
from unbraid.scoring.presence import presence_p
from unbraid.scoring.readings import (
    HeldOut,
    Reading,
    best_reading,
    class_target,
    curve_reading,
    nearest_class,
    number_target,
    pieces_of,
    places_of,
)

N = 900


@pytest.fixture
def rng() -> np.random.Generator:
    return np.random.default_rng(7)


def halves(n: int) -> list[tuple[np.ndarray, np.ndarray]]:
    rows = np.arange(n)
    return [(rows[rows % 2 != part], rows[rows % 2 == part]) for part in range(2)]


def planted(rng: np.random.Generator, n: int = N) -> tuple[np.ndarray, np.ndarray]:
    """Factors: a category of 4, an ordinal of 6, a real, and an angle."""
    factors = np.column_stack([rng.integers(0, 4, n), rng.integers(0, 6, n), rng.random(n), rng.random(n) * 2 * np.pi])
    return factors, (factors - factors.mean(axis=0)) / factors.std(axis=0)


KINDS = ("categorical", "ordinal", "continuous", "cyclic")
NAMES = ("shape", "size", "x", "angle")


def diagnose(codes: np.ndarray, factors: np.ndarray, **about: object) -> unbraid.Diagnosis:
    return unbraid.diagnose(codes, factors, kinds=KINDS, names=NAMES, **about)


def kinds(diagnosis: unbraid.Diagnosis) -> list[tuple[str, tuple[int, ...]]]:
    return [(each.kind, each.codes) for each in diagnosis.factors.values()]


class TestReadings:
    def test_numbers_are_r2_and_classes_adjusted_balanced_accuracy(self, rng: np.random.Generator) -> None:
        values, predicted = rng.random((N, 2)), rng.random((N, 2))
        target = number_target(values)
        scale = np.sqrt(((values - values.mean(axis=0)) ** 2).sum(axis=1).mean())
        own = best_reading(target, ((predicted - values.mean(axis=0)) / scale)[None], (0,)).score
        assert own == pytest.approx(r2_score(values, predicted, multioutput="variance_weighted"), rel=1e-9)
        levels, guessed = rng.choice(3, N, p=[0.7, 0.2, 0.1]), rng.integers(0, 3, N)
        own = best_reading(class_target(levels), np.zeros((1, N, 3)), (0,), guessed[None]).score
        assert own == pytest.approx(balanced_accuracy_score(levels, guessed, adjusted=True), rel=1e-9)

    def test_means_over_neighbours_by_loops(self, rng: np.random.Generator) -> None:
        code, values = rng.integers(0, 30, 200) / 30.0, rng.random(200)
        target, splits = number_target(values), halves(200)
        own = curve_reading(places_of(code, splits), target, splits, (0,))
        scores = []
        for count in (5, 15, 50):
            errors = 0.0
            for train, test in splits:
                order = train[np.argsort(code[train], kind="stable")]
                for row in test:
                    below, upto = (code[order] < code[row]).sum(), (code[order] <= code[row]).sum()
                    start = min(max((below + upto) // 2 - count // 2, 0), len(order) - count)
                    mean = target.columns[order[start : start + count], 0].mean()
                    errors += (target.columns[row, 0] - mean) ** 2
            scores.append(1 - errors / (target.columns**2).sum())
        assert own.score == pytest.approx(max(scores), rel=1e-9)

    def test_lines_are_ridge_regressions_of_scikit_learn(self, rng: np.random.Generator) -> None:
        codes = rng.standard_normal((N, 3))
        target = number_target(codes @ [1.0, -2.0, 0.5] + rng.standard_normal(N))
        held_out = HeldOut(codes, np.arange(N) % 2)
        own = held_out.by_line([[0, 1, 2]] * 2, target)
        scores = []
        for penalty in (1e-4, 1e-2, 1e-1, 1.0):
            predicted = np.empty(N)
            for train, test in held_out.splits:
                ridge = Ridge(alpha=penalty * len(train)).fit(held_out.codes[train], target.columns[train, 0])
                predicted[test] = ridge.predict(held_out.codes[test])
            scores.append(r2_score(target.columns[:, 0], predicted))
        assert own.score == pytest.approx(max(scores), abs=1e-9)

    def test_classes_are_those_of_linear_discriminants(self, rng: np.random.Generator) -> None:
        classes = rng.choice(3, N, p=[0.8, 0.15, 0.05])
        known = rng.standard_normal((N, 4)) + rng.standard_normal((3, 4))[classes] * 1.5
        asked = rng.standard_normal((300, 4)) * 2
        other = LinearDiscriminantAnalysis(priors=[1 / 3] * 3).fit(known, classes).predict(asked)
        assert (
            nearest_class(known[None], classes, asked[None])[0] == other
        ).mean() > 0.995  # but for a divisor of n - 3

    def test_pieces_and_products(self) -> None:
        codes = np.array([[-1.0, 0.0], [0.0, 1.0], [1.0, 3.0], [2.0, -2.0], [3.0, 1.0]])
        pieces = pieces_of(codes)
        assert pieces.shape == (5, 2 + 2 * 4 + 1)
        product = codes[:, 0] * codes[:, 1]
        assert np.allclose(pieces[:, -1], product / product.std())
        above = np.maximum(codes[:, 0] - np.quantile(codes[:, 0], 0.2), 0)
        assert np.allclose(pieces[:, 2], above / above.std())

    def test_related_columns_and_pairs(self, rng: np.random.Generator) -> None:
        codes = rng.standard_normal((N, 12))
        answers = [codes[:, 3], np.abs(codes[:, 5]), np.sign(codes[:, 2] * codes[:, 7])]
        targets = [number_target(each) for each in answers]
        shares = relatedness(codes, targets, [np.arange(N)])[0]
        assert shares[:2].argmax(axis=1).tolist() == [3, 5]
        assert shares[:2].max(axis=1).min() > 0.8
        sparse = relatedness(scipy.sparse.csc_matrix(codes), targets, [np.arange(N)])[0]
        assert np.allclose(shares, sparse, atol=1e-6)
        assert best_pairs(ranks_of(codes), targets[2], np.arange(N), range(12), 1) == [(2, 7)]

    def test_the_smallest_set_has_what_is_needed_and_no_more(self, rng: np.random.Generator) -> None:
        codes = rng.standard_normal((N, 8))
        held_out = HeldOut(codes, np.arange(N) % 3)
        target = number_target(codes[:, 1] + codes[:, 6] + 0.05 * codes[:, 4])
        assert sorted(smallest_set(held_out, target, range(8), 0.9, pieces=False)) == [1, 6]
        target = number_target(codes[:, 0] * codes[:, 5] + 0.1 * rng.standard_normal(N))
        assert sorted(smallest_set(held_out, target, range(8), 0.9, pieces=True)) == [0, 5]


class TestVerdicts:
    def test_codes_of_their_own_in_any_order_and_scale(self, rng: np.random.Generator) -> None:
        factors, z = planted(rng)
        codes = np.column_stack([1e3 * z[:, 2], -z[:, 0], rng.standard_normal(N), np.exp(z[:, 1]), z[:, 3]])
        diagnosis = diagnose(codes + 0.1 * codes.std(axis=0) * rng.standard_normal(codes.shape), factors)
        assert kinds(diagnosis)[:3] == [("own code", (1,)), ("own code", (3,)), ("own code", (0,))]
        assert diagnosis.codes[2].kind == "none of these factors"
        assert diagnosis.codes[1].kind == "one factor"
        assert list(diagnosis.codes[1].factors) == ["shape"]

    def test_copies_a_mixture_a_circle_and_what_is_missing(self, rng: np.random.Generator) -> None:
        factors, z = planted(rng)
        angle = factors[:, 3]
        turned = np.column_stack([z[:, 2] + z[:, 1], z[:, 2] - z[:, 1]]) / np.sqrt(2)
        codes = np.column_stack([np.cos(angle), np.sin(angle), turned, np.zeros(N)])
        diagnosis = diagnose(codes + [0.1, 0.1, 0.1, 0.1, 0] * rng.standard_normal(codes.shape), factors)
        found = kinds(diagnosis)
        assert found == [("absent", ()), ("spread", (2, 3)), ("spread", (2, 3)), ("circle", (0, 1))]
        assert diagnosis.factors["x"].mixture == "linear"
        assert diagnosis.codes[4].kind == "dead"
        assert diagnosis.codes[2].kind == "several factors"
        copied = np.column_stack([codes[:, :2], z[:, 2], -2 * z[:, 2], z[:, 0]])
        found = kinds(diagnose(copied + 0.2 * rng.standard_normal(copied.shape), factors))
        assert found[0] == ("own code", (4,))
        assert found[2] == ("copied", (2, 3))

    def test_the_best_of_a_mixture_is_one_of_its_codes(self, rng: np.random.Generator) -> None:
        """Not a third code, a noisy copy of the factor that the mixture holds better."""
        x, other, noise = rng.standard_normal((3, 2 * N))
        codes = np.stack([x + other, x - other, x + 0.6 * noise], axis=1)
        found = unbraid.diagnose(codes, x[:, None], kinds=["continuous"])
        factor = found.factors["factor_0"]
        assert (factor.kind, factor.codes) == ("spread", (0, 1))
        assert factor.share == pytest.approx(1 / 2, abs=0.03)  # the third has 1 / 1.36
        assert found.codes[2].factors["factor_0"] == pytest.approx(1 / 1.36, abs=0.03)

    def test_halves_of_a_range_are_no_copies(self, rng: np.random.Generator) -> None:
        """Each half holds R² .875 alone, nearly as copies would, and together they miss less than copies could."""
        factors, z = planted(rng)
        codes = np.column_stack([np.minimum(factors[:, 2], 0.5), z[:, 1], np.maximum(factors[:, 2], 0.5)])
        diagnosis = diagnose(codes + 0.1 * codes.std(axis=0) * rng.standard_normal(codes.shape), factors)
        assert kinds(diagnosis)[2] == ("spread", (0, 2))

    def test_codes_that_tell_little_each_are_no_copies(self, rng: np.random.Generator) -> None:
        factors, z = planted(rng)
        codes = z[:, [2] * 4] + [0.3, 0.3, 2.5, 2.5] * rng.standard_normal((N, 4))
        assert kinds(diagnose(codes, factors))[2] == ("copied", (0, 1))
        assert kinds(diagnose(z[:, [2] * 4] + 2.5 * rng.standard_normal((N, 4)), factors))[2][0] == "spread"

    def test_what_two_codes_tell_only_together(self, rng: np.random.Generator) -> None:
        factors, z = planted(rng)
        first = rng.integers(0, 2, N)
        factors[:, 0] = rng.integers(0, 2, N)
        codes = np.column_stack([first, z[:, 1], (factors[:, 0] + first) % 2]) + 0.2 * rng.standard_normal((N, 3))
        verdict = diagnose(codes, factors).factors["shape"]
        assert (verdict.kind, verdict.codes, verdict.mixture) == ("spread", (0, 2), "curved")
        assert verdict.measure == "accuracy"
        assert verdict.chance == 0.5

    def test_a_code_that_two_factors_share(self, rng: np.random.Generator) -> None:
        factors, z = planted(rng)
        codes = np.column_stack([z[:, 1] + z[:, 2], z[:, 0], rng.standard_normal(N)])
        diagnosis = diagnose(codes, factors)
        assert kinds(diagnosis)[1:3] == [("shared code", (0,))] * 2
        assert diagnosis.factors["x"].shared_with == ("size",)
        assert set(diagnosis.codes[0].factors) == {"size", "x"}

    def test_no_code_is_blamed_for_factors_that_follow_from_each_other(self, rng: np.random.Generator) -> None:
        first = rng.standard_normal(N)
        factors = np.column_stack([first, 0.8 * first + 0.6 * rng.standard_normal(N)])
        codes = factors + 0.1 * rng.standard_normal((N, 2))
        diagnosis = unbraid.diagnose(codes, factors, names=["a", "b"])
        assert kinds(diagnosis) == [("own code", (0,)), ("own code", (1,))]
        assert {each.kind for each in diagnosis.codes.values()} == {"one factor"}
        assert diagnosis.notes == ("a and b follow from each other: a code of one tells of the other",)

    @pytest.mark.parametrize(("n", "times"), [(300, 3), (2500, 1)])
    def test_noise_is_absent(self, n: int, times: int) -> None:
        said = [
            verdict.kind
            for seed in range(times)
            for verdict in diagnose(
                np.random.default_rng([seed, n]).standard_normal((n, 6)), planted(np.random.default_rng(seed), n)[0]
            ).factors.values()
        ]
        assert said.count("absent") >= len(said) - 1


class TestData:
    def test_whole_groups_are_predicted(self) -> None:
        """A label for each of 20 animals and codes that name the animal: rows of one animal say nothing of another."""
        said = []
        for seed in range(8):
            rng = np.random.default_rng(seed)
            animals = np.repeat(np.arange(20), 30)
            codes = rng.standard_normal((20, 4))[animals] + 0.1 * rng.standard_normal((600, 4))
            labels = rng.integers(0, 2, 20)[animals]
            (verdict,) = unbraid.diagnose(codes, labels, kinds=["categorical"], groups=animals).factors.values()
            said.append(verdict.kind)
        assert said.count("absent") >= 7

    def test_two_random_walks_have_nothing_to_do_with_each_other(self) -> None:
        said = []
        for seed in range(10):
            rng = np.random.default_rng(seed)
            codes, factor = rng.standard_normal((2000, 3)).cumsum(axis=0), rng.standard_normal(2000).cumsum()
            (verdict,) = unbraid.diagnose(codes, factor, names=["speed"]).factors.values()
            said.append(verdict.kind)
        assert said.count("absent") >= 9

    def test_p_of_shifted_labels_by_loops(self, rng: np.random.Generator) -> None:
        true = np.convolve(rng.standard_normal(240), np.ones(40), "valid")[:, None]
        known = np.roll(true, 1, axis=0) + 20 * rng.standard_normal(true.shape)
        rows = np.arange(len(true))
        parts = [(rows[100:], rows[:100]), (rows[:100], rows[100:])]
        answers = Reading((0,), known.copy(), np.ones(len(rows)), np.ones(len(rows)))
        found = presence_p(number_target(true[:, 0]), answers, parts, None, in_time=True)
        sums = np.zeros(100)
        for _, test in parts:
            one, other = (each[test[:100], 0] - each[test[:100], 0].mean() for each in (known, true))
            sums += [one @ np.roll(other, -shift) for shift in range(100)]
        others = sums[10:90]
        by_rank = (1 + (others >= sums[0]).sum()) / 81
        by_spread = norm.sf((sums[0] - others.mean()) / others.std())
        assert found == pytest.approx(by_spread if by_rank <= 0.01 else max(by_rank, by_spread), rel=1e-4)

    def test_a_signal_in_time_is_present(self) -> None:
        rng = np.random.default_rng(1)
        position = np.cumsum(rng.standard_normal(3000) * 0.3)
        factor = np.sin(position)
        codes = np.column_stack([factor + 0.3 * rng.standard_normal(3000), rng.standard_normal(3000).cumsum()])
        verdict = unbraid.diagnose(codes, factor, names=["speed"]).factors["speed"]
        assert (verdict.kind, verdict.codes) == ("own code", (0,))

    def test_a_short_time_series_is_not_said_to_lack_a_factor(self) -> None:
        rng = np.random.default_rng(1)
        factor = np.sin(np.cumsum(rng.standard_normal(300) * 0.3))
        codes = (factor + 0.1 * rng.standard_normal(300)).reshape(-1, 1)
        diagnosis = unbraid.diagnose(codes, factor, names=["speed"])
        assert diagnosis.factors["speed"].kind == "unclear"
        assert "shuffle the rows if their order means nothing" in " ".join(str(diagnosis).split())

    def test_tables_sorted_by_class_are_no_time_series(self) -> None:
        data, classes = load_wine(return_X_y=True)
        diagnosis = unbraid.diagnose(StandardScaler().fit_transform(data)[:, :6], classes, kinds=["categorical"])
        assert diagnosis.factors["factor_0"].strength > 0.8

    def test_sorted_rows_are_no_time_series(self) -> None:
        rng = np.random.default_rng(1)
        factor = np.sort(rng.random(1000))
        codes = np.column_stack([factor + 0.1 * rng.standard_normal(1000), rng.standard_normal(1000)])
        assert unbraid.diagnose(codes, factor, names=["x"]).factors["x"].kind == "own code"

    def test_grids_one_after_the_other_are_no_time_series(self, rng: np.random.Generator) -> None:
        grid = np.stack(np.indices((3, 4, 5)), axis=-1).reshape(-1, 3)
        repeated = np.tile(grid, (12, 1))
        splits = [np.sort(part) for part in np.split(rng.permutation(4000), [3000])]
        split = np.stack(np.indices((10, 20, 20)), axis=-1).reshape(-1, 3)[np.concatenate(splits)]
        for factors in (repeated, split):
            codes = np.column_stack([factors + 0.2 * rng.standard_normal(factors.shape), rng.random(len(factors))])
            diagnosis = unbraid.diagnose(codes, factors, kinds=["ordinal"] * 3)
            assert kinds(diagnosis) == [("own code", (k,)) for k in range(3)]

    def test_trials_of_one_after_the_other_are_a_time_series(self) -> None:
        """A stimulus for each of 40 trials of 50 steps, and codes that drift slowly."""
        verdicts = []
        for seed in range(5):
            rng = np.random.default_rng(seed)
            stimulus = rng.integers(0, 4, 40).repeat(50)
            factors = np.column_stack([stimulus, np.tile(np.arange(50), 40)])
            drift = rng.standard_normal((2000, 3)).cumsum(axis=0)
            diagnosis = unbraid.diagnose(drift, factors, kinds=["categorical", "ordinal"], names=["stimulus", "step"])
            verdicts += [each.kind for each in diagnosis.factors.values()]
        assert verdicts.count("absent") >= 9

    def test_rows_in_folders_of_classes_are_no_time_series(self, rng: np.random.Generator) -> None:
        classes = np.repeat(np.arange(3), 60)
        factors = np.column_stack([classes, 0.8 * classes + rng.standard_normal(180)])
        codes = np.column_stack([classes + 0.3 * rng.standard_normal(180), rng.standard_normal(180)])
        verdict = unbraid.diagnose(codes, factors, names=["class", "x"], kinds=["categorical", "continuous"])
        assert verdict.factors["class"].kind == "own code"

    def test_rows_of_weight_count_as_often(self, rng: np.random.Generator) -> None:
        """A code that tells the factor on half of the rows alone, which have all the weight, or next to none."""
        factor = rng.random(4000)
        half = np.arange(4000) < 2000
        codes = np.column_stack([np.where(half, factor, rng.random(4000)), rng.standard_normal(4000)])
        strengths = [
            unbraid.diagnose(codes, factor, names=["x"], weights=np.where(half, *weights)).factors["x"].strength
            for weights in ((1.0, 0.01), (0.01, 1.0))
        ]
        assert strengths[0] > 0.9
        assert strengths[1] < 0.2

    def test_unwanted_factors_are_marked(self, rng: np.random.Generator) -> None:
        factors, z = planted(rng)
        diagnosis = diagnose(z[:, :3], factors, unwanted=["x"])
        assert diagnosis.factors["x"].unwanted
        assert "the codes tell of the unwanted x" in diagnosis.in_short()
        assert diagnosis.column == "2 of 3 alone, 1 missing"

    def test_sparse_codes_are_read_as_full_ones(self, rng: np.random.Generator) -> None:
        factors, z = planted(rng)
        codes = np.where(rng.random((N, 700)) < 0.03, rng.random((N, 700)), 0.0)
        codes[:, 401] = np.where(factors[:, 0] > 0, factors[:, 0] + 0.3 * rng.random(N), 0.0)
        codes[:, 17] = z[:, 2]
        for matrix in (codes, scipy.sparse.csr_matrix(codes)):
            diagnosis = diagnose(matrix, factors)
            assert kinds(diagnosis)[0] == ("own code", (401,))
            assert kinds(diagnosis)[2] == ("own code", (17,))
            assert kinds(diagnosis)[1] == ("absent", ())

    def test_sparse_codes_without_metrics_have_an_answer(self, rng: np.random.Generator) -> None:
        factors, z = planted(rng)
        codes = scipy.sparse.csr_matrix(np.column_stack([z[:, 2], np.zeros((N, 3))]))
        card = unbraid.score(codes, factors, kinds=KINDS, names=NAMES, metrics="none")
        assert card.diagnosis is not None
        assert kinds(card.diagnosis)[2] == ("own code", (0,))

    def test_sparse_codes_keep_their_labels_where_some_are_missing(self, rng: np.random.Generator) -> None:
        factors, z = planted(rng)
        factors[rng.random(N) < 0.1, 0] = np.nan
        diagnosis = diagnose(scipy.sparse.csr_matrix(z), factors)
        assert [each.codes for each in diagnosis.factors.values()][:3] == [(0,), (1,), (2,)]

    def test_each_of_many_cells_of_a_ring_is_about_it(self, rng: np.random.Generator) -> None:
        angle = rng.random(N) * 2 * np.pi
        preferred = np.linspace(0, 2 * np.pi, 41)[:-1]
        cells = np.exp(2 * np.cos(angle[:, None] - preferred)) + 0.2 * rng.standard_normal((N, 40))
        diagnosis = unbraid.diagnose(cells, angle, kinds=["cyclic"], names=["head"])
        assert diagnosis.factors["head"].kind in ("spread", "circle")
        assert {each.kind for each in diagnosis.codes.values()} == {"one factor"}

    def test_groups_too_few_or_too_unequal_to_be_parted(self, rng: np.random.Generator) -> None:
        factors, z = planted(rng, 120)
        for groups in (np.zeros(120), np.arange(120) % 2, np.r_[np.zeros(116), 1, 2, 3, 4]):
            diagnosis = diagnose(z, factors, groups=groups.astype(int))
            assert {each.kind for each in diagnosis.factors.values()} == {"unclear"}
            assert "too few groups of rows" in str(diagnosis)
        sparse = scipy.sparse.csr_matrix(z[:30])
        assert {each.kind for each in diagnose(sparse, factors[:30]).factors.values()} == {"unclear"}

    def test_too_few_rows_and_no_factors(self, rng: np.random.Generator) -> None:
        factors, z = planted(rng, 30)
        assert {each.kind for each in diagnose(z, factors).factors.values()} == {"unclear"}
        with pytest.raises(ValueError, match="labels"):
            unbraid.diagnose(z)


class TestCards:
    def test_json_holds_the_answer_and_brings_it_back(self, rng: np.random.Generator, tmp_path: object) -> None:
        factors, z = planted(rng)
        card = unbraid.score(z, factors, kinds=KINDS, names=NAMES, metrics="none")
        assert not len(card)
        card.save(f"{tmp_path}/scores.json")
        with open(f"{tmp_path}/scores.json") as file:
            assert json.load(file)["diagnosis"]["factors"]["shape"]["kind"] == "own code"
        assert unbraid.ScoreCard.load(f"{tmp_path}/scores.json").diagnosis == card.diagnosis
        assert card.diagnosis == diagnose(z, factors)
