"""The stress suite, by metrics that are wrong on purpose: each is caught where it is wrong, and nowhere else."""

import json
from pathlib import Path

import numpy as np
import pytest

from unbraid import stress
from unbraid.metrics import METRICS, NotDefined, custom_metric, mig
from unbraid.scoring.processes import ENCODERS, PROCESSES, named
from unbraid.scoring.stress import DEMANDS, ENCODED, ENDS, NOISE, Stressed
from unbraid.scoring.synthetic_codes import CASES, GROUPS, SPACE, circle, upper_corner


def correlations(codes, factors):
    varying = np.ptp(codes, axis=0) > 0
    found = np.zeros((codes.shape[1], factors.shape[1]))
    if not varying.any():
        return found
    every = np.corrcoef(codes[:, varying].T, factors.T)
    found[varying] = every[: varying.sum(), varying.sum() :]
    return found


def best(codes, factors):
    """Blind to copies."""
    return float(np.abs(correlations(codes, factors)).max(axis=0).mean())


def gap(codes, factors):
    ranked = np.sort(np.pad(np.abs(correlations(codes, factors)), ((1, 0), (0, 0))), axis=0)
    return float((ranked[-1] - ranked[-2]).mean())


def in_place(codes, factors):
    """Believes that code k is of factor k, and positive."""
    return float(np.diag(correlations(codes, factors)).mean())


def covariance(codes, factors):
    """Depends on the scale of codes."""
    return float(
        np.abs((codes - codes.mean(axis=0)).T @ (factors - factors.mean(axis=0)) / len(codes)).max(axis=0).mean()
    )


def fragile(codes, factors):
    """Divides by the variance of a constant."""
    with np.errstate(all="ignore"):
        r = np.corrcoef(codes.T, factors.T)[: codes.shape[1], codes.shape[1] :]
    return float(np.abs(r).max(axis=0).mean())


def blocks_of_ten(codes, factors):
    """Knows how many rows there are to be."""
    return best(codes, factors) if len(codes) > 1000 else 0.0


def greedy(codes, factors):
    """In sample, with more to fit than rows of a few."""
    known = np.column_stack([codes, np.random.default_rng(0).standard_normal((len(codes), 40))])
    fitted = known @ np.linalg.lstsq(known, factors - factors.mean(axis=0), rcond=None)[0]
    return float(fitted.var(axis=0).sum() / factors.var(axis=0).sum())


def per_code(codes, factors):
    """A mean over all codes, those that are idle or irrelevant among them."""
    return float(np.abs(correlations(codes, factors)).max(axis=1).mean())


def failures(*metrics, **options) -> list[set[str]]:
    """Where each fails, but for what processes draw."""
    return [{at for at in found if ": " not in at} for found in all_failures(*metrics, **options)]


def all_failures(*metrics, **options) -> list[set[str]]:
    return [{check.situation for check in each.failed} for each in stress(*metrics, **options)]


BY_CHANCE = "many codes, few rows, noise"  # the best of a hundred correlations on 200 rows is never 0


def test_metrics_that_are_wrong_are_caught_where_they_are_wrong() -> None:
    wrong = {
        best: {"twice", BY_CHANCE},
        gap: {"dependent factors"},
        fragile: {"twice", "with idle codes", "constant", BY_CHANCE},
        blocks_of_ten: {"twice", "few rows"},
        per_code: {"twice", "one lost", "one factor copied", "with idle codes", "beside codes of noise"},
    }
    assert dict(zip(wrong, failures(*wrong, claims="compactness"), strict=True)) == wrong
    of_place, of_scale, of_luck = failures(in_place, covariance, greedy)
    assert "reordered and flipped" in of_place
    assert "scaled" in of_scale
    assert of_luck == {"few rows, noise", "sparse noise", BY_CHANCE}
    assert {"rotated", "continuous, rotated"} <= failures(best, claims="explicitness")[0]
    assert "twice" in failures(gap, claims="modularity")[0]
    for both in (["modularity", "compactness"], ["compactness", "modularity"]):  # what one forbids, no other allows
        of_best, of_gap = failures(best, gap, claims=both)
        assert "twice" in of_best - of_gap


def test_encoders_judge_by_closed_form() -> None:
    """Ranks see no bend, and a line does; R^2 by all codes sees neither mixing nor copies, but a lost factor."""

    def ranks(codes, factors):
        varying = codes[:, np.ptp(codes, axis=0) > 0]
        return best(np.argsort(np.argsort(varying, axis=0), axis=0), np.argsort(np.argsort(factors, axis=0), axis=0))

    def linear(codes, factors):
        known = np.column_stack([codes, np.ones(len(codes))])
        missed = factors - known @ np.linalg.lstsq(known, factors, rcond=None)[0]
        return float(1 - (missed.var(axis=0) / factors.var(axis=0)).mean())

    bent = {named(process, "bent") for process in PROCESSES}
    of_ranks, of_lines = all_failures(ranks, best, claims="alignment")
    assert not bent & of_ranks
    assert bent - {"one from one: bent"} <= of_lines  # of which none can say which code is whose
    (told,) = stress(linear, claims="explicitness")
    failed = {check.situation for check in told.failed}
    assert not {each for each in failed if ": " in each}
    assert failed >= {BY_CHANCE}  # in sample: 100 codes fit half of 200 rows
    for process in PROCESSES:
        assert told.scores[named(process, "entangled, wide")] == pytest.approx(1.0)
        assert told.scores[named(process, "lossy")] < 0.9  # type: ignore[operator]


def test_processes_are_what_they_are_called() -> None:
    rng = np.random.default_rng(0)
    drawn = {name: draw(rng) for name, draw in PROCESSES.items()}
    assert np.corrcoef(drawn["correlated"].T)[np.triu_indices(4, 1)] == pytest.approx(0.5, abs=0.1)  # pyright: ignore[reportIndexIssue]
    assert (drawn["one from one"][:, 1] == np.tanh(2 * drawn["one from one"][:, 0])).all()
    assert (drawn["one from two"][:, 2] == drawn["one from two"][:, :2].prod(axis=1)).all()
    for name, encode in ENCODERS.items():
        codes = encode(drawn["independent"], rng)
        assert codes.shape == (1000, {"lossy": 3}.get(name, 8 if name in WIDE else 4))
    singular = np.linalg.svd(ENCODERS["entangled, wide"](np.eye(4), rng), compute_uv=False)
    assert singular.max() / singular.min() == pytest.approx(3.0)


def test_codes_of_a_circle_are_as_wide_as_the_others() -> None:
    np.testing.assert_allclose(circle(SPACE.grid(), np.random.default_rng(0)).std(axis=0), 1.0)


WIDE = ("copied", "bent twice", "entangled, wide", "sine and cosine")


def test_a_metric_that_says_the_same_of_everything_fails_at_everything() -> None:
    (only,) = stress(lambda *_: 0.5, claims="explicitness")
    assert not only.passed
    assert not only.n_passed
    assert {check.why for check in only.checks} == {"perfect codes are not separated from noise"}


def test_the_direction_is_that_which_is_claimed() -> None:
    less = lambda codes, factors: 1.0 - best(codes, factors)  # noqa: E731
    assert failures(less, claims="compactness", higher_is_better=False) == [{"twice", BY_CHANCE}]
    assert "perfect" in failures(less, claims="compactness")[0]


def test_what_raises_fails_and_what_has_no_meaning_is_not_judged() -> None:
    def raising(codes, factors):
        if codes.shape[1] != 4:
            raise RuntimeError("needs four codes")
        return best(codes, factors)

    def shy(codes, factors):
        if codes.shape[1] != 4:
            raise NotDefined("needs four codes")
        return best(codes, factors)

    (only,) = stress(raising, claims="compactness")
    assert {"twice", "one lost", "split"} <= {check.situation for check in only.failed if "needs four" in check.why}
    (only,) = stress(shy, claims="compactness")
    unjudged = {check.situation for check in only.checks if check.passed is None and ": " not in check.situation}
    assert unjudged == {
        "twice", "one lost", "split", "with idle codes", "beside codes of noise", BY_CHANCE, "rare classes, noise",
        "sparse noise", "all alike", "one factor copied",
    }  # fmt: skip
    assert not [check for check in only.failed if ": " not in check.situation]


def test_codes_that_learnt_nothing_are_what_they_are_called() -> None:
    rng = np.random.default_rng(0)
    null = {name: case(rng) for name, case in GROUPS["null"].items()}
    assert not np.ptp(null["constant"].codes, axis=0).any()
    nearly = null["nearly constant"]
    assert 0 < nearly.codes.std() / nearly.codes.mean() < 1e-8
    assert (null["sparse noise"].codes == 0).mean() == pytest.approx(0.9, abs=0.01)
    for name in ("nearly constant", "sparse noise"):
        assert np.abs(correlations(null[name].codes, null[name].factors)).mean() < 0.05
    for name in ("all alike", "one factor copied"):
        assert (null[name].codes == null[name].codes[:, :1]).all()
    # Of five parts of equal variance, four are factors and one is noise.
    assert correlations(null["all alike"].codes, null["all alike"].factors)[0] == pytest.approx(5**-0.5, abs=0.05)
    assert correlations(null["one factor copied"].codes, null["one factor copied"].factors)[0] == pytest.approx(
        [0, 0, 0, 1], abs=1e-12
    )


def test_metrics_that_reward_nothing_are_caught() -> None:
    """Agreement of codes with each other, their calm, or what is told for each bit of variance."""

    def redundancy(codes, factors):
        return best(codes, factors) + float(np.abs(correlations(codes, codes)).mean())

    def calm(codes, factors):
        return best(codes, factors) / (best(codes, factors) + float(codes.std()))

    def ratio(codes, factors):
        return best(codes, factors) / float(codes.var(axis=0).mean())

    of_copies, of_calm, of_ratio = failures(redundancy, calm, ratio, claims="alignment", cases="null")
    assert of_copies == {"all alike", "one factor copied"}
    assert "nearly constant" in of_calm
    assert "nearly constant" in of_ratio


def test_cases_can_be_chosen() -> None:
    (null,) = stress(best, claims="compactness", cases="null")
    assert set(null.scores) == {"perfect", "noise", *GROUPS["null"]}
    assert null.passed
    (both,) = stress(best, claims="compactness", cases=["factors", "null"])
    assert set(both.scores) == {"perfect", "noise", *GROUPS["factors"], *GROUPS["null"]}
    (whole,) = stress(best, claims="compactness")
    assert [check for check in whole.checks if check.situation in GROUPS["null"]] == list(null.checks[2:])
    assert {name for group in GROUPS.values() for name in group} == set(CASES) == set(whole.scores)
    with pytest.raises(ValueError, match="unknown cases 'nul'; did you mean 'null'"):
        stress(best, cases="nul")


def test_a_function_may_return_a_mapping_or_a_number_in_an_array() -> None:
    def several(codes, factors):
        return {"the.best": np.float32(best(codes, factors)), "gap": gap(codes, factors), "who": "me", "per": [1, 2]}

    def broken(codes, factors):
        return {"best": best(codes, factors), "bad": float("nan")}

    both = stress(several, claims="compactness", cases="faults")
    assert [each.value for each in both] == ["the.best", "gap"]
    alone = stress(best, gap, claims="compactness", cases="faults")
    assert [[check.passed for check in each.checks] for each in both] == [
        [check.passed for check in each.checks] for each in alone
    ]
    assert [each.value for each in stress(several, value="gap", cases="null")] == ["gap"]
    sound, unsound = stress(broken, cases="null")
    assert sound.passed
    assert {check.why for check in unsound.failed} == {"failed: gave nan"}
    assert [check.passed for check in stress(lambda *_: np.array(best(*_)), cases="null")[0].checks] == [
        check.passed for check in sound.checks
    ]
    asked = set()
    stress(lambda codes, factors, kinds, sizes: asked.add((kinds, sizes)) or best(codes, factors), cases="null")
    assert asked == {(SPACE.kinds, SPACE.sizes)}
    with pytest.raises(ValueError, match="has no value 'gpa' to judge; did you mean 'gap'"):
        stress(several, value="gpa", cases="null")
    with pytest.raises(ValueError, match="dci_lasso has no value 'score' to judge; there are disentanglement, comp"):
        stress("dci_lasso", value="score", cases="null")
    (empty,) = stress(lambda *_: {"who": "me"}, cases="null")
    assert {check.why for check in empty.failed} >= {"failed: ValueError: gave a mapping without a number, of who"}


def test_metrics_of_the_table_are_held_to_their_own_claims() -> None:
    (mig,) = stress("mig")
    # Bins of equal width see less of a factor whose code is bent.
    assert {check.situation for check in mig.failed} == {
        f"{each}: bent" for each in PROCESSES if each != "one from one"
    }
    assert mig.claims == ("compactness",)
    assert 0.74 < mig.scores["one lost"] < 0.76  # type: ignore[operator]
    assert {"rotated", "beside codes of noise"} <= failures("modularity")[0]
    for name, row in METRICS.items():
        assert all(claim in DEMANDS for claims in row.claims.values() for claim in claims), name
    assert all(situation in CASES for demands in DEMANDS.values() for situation in demands)
    assert all(encoder in ENCODERS for demands in ENCODED.values() for encoder in demands)
    assert all(situation in CASES for situation in (*NOISE, *ENDS))


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (("mig", "nonsense"), "unknown metric 'nonsense'"),
        (("elbo_terms",), "elbo_terms claims neither modularity, compactness, alignment, explicitness"),
        (("mig", "--cases", "noisy"), "unknown cases 'noisy'; did you mean 'noise'?"),
    ],
)
def test_bad_input_is_one_line(unbraid_cli, arguments: tuple[str, ...], said: str) -> None:
    code, _, error = unbraid_cli("stress", *arguments)
    assert code == 2
    assert said in error
    assert len(error.splitlines()) == 1


def test_the_command_prints_and_writes_every_check(unbraid_cli, tmp_path: Path, monkeypatch) -> None:
    monkeypatch.chdir(tmp_path)
    Path("my_lab_stressed.py").write_text("def known(codes, factors):\n    return 0.5\n")
    code, printed, error = unbraid_cli("stress", "my_lab_stressed:known", "med", "--json", "out.json")
    assert code == 3, error
    assert "my_lab_stressed:known" in printed
    assert "few rows" in printed
    first, second = json.loads(Path("out.json").read_text())["metrics"]
    assert (first["metric"], first["claims"], first["passed"]) == ("my_lab_stressed:known", [], False)
    assert second["scores"]["noise"] == pytest.approx(METRICS_MED_NOISE, abs=0.005)
    code, printed, _ = unbraid_cli("stress", "my_lab_stressed:known")
    assert "FAIL perfect" in printed
    for process in PROCESSES:  # the longest names do not touch the next column
        assert f"{named(process, 'Gaussian noise')}  " in printed, process
    assert isinstance(stress("med")[0], Stressed)


def gap_of_information(codes, factors, base: float = np.e):
    """MIG on 20 bins, whose information is in another unit than its entropies unless the base is e."""
    binned = [np.digitize(code, np.histogram_bin_edges(code, 20)[1:-1]) for code in codes.T]
    gaps = []
    for factor in factors.T:
        levels = np.unique(factor, return_inverse=True)[1]
        shares = np.bincount(levels) / len(levels)
        of_codes = [0.0]
        for code in binned:
            joint = np.bincount(code * len(shares) + levels, minlength=20 * len(shares)).reshape(20, -1) / len(levels)
            expected = np.outer(joint.sum(axis=1), shares)
            of_codes.append(np.sum(joint * np.log(np.where(joint > 0, joint / np.maximum(expected, 1e-300), 1.0))))
        *_, second, first = sorted(of_codes)
        gaps.append((first - second) / np.log(base) / -np.sum(shares * np.log(shares)))
    return float(np.mean(gaps))


def gap_in_bits(codes, factors):
    return gap_of_information(codes, factors, 2.0)


def test_a_wrong_base_of_the_logarithm_is_noticed_where_the_best_score_is_declared(unbraid_cli) -> None:
    right, wrong = stress(gap_of_information, gap_in_bits, claims="compactness", cases="null", best=1.0)
    assert right.passed
    assert [(check.situation, check.demand) for check in wrong.failed] == [("perfect", "reaches 1")]
    assert wrong.scores["perfect"] == pytest.approx(1 / np.log(2))
    assert stress(gap_in_bits, claims="compactness", cases="null")[0].passed
    for best_score, expected in (("1", 3), ("1.4427", 0)):
        named = f"{__name__}:{gap_in_bits.__name__}"
        code, _, error = unbraid_cli("stress", named, "--claim", "compactness", "--cases", "null", "--best", best_score)
        assert code == expected, error


METRICS_MED_NOISE = 0.077  # as evidence/behaviour.json has it


def test_the_upper_corner_is_that_of_the_first_two_factors() -> None:
    factors = np.array([[0, 0, 0], [3, 0, 1], [0, 3, 0], [3, 3, 0], [2, 2, 1], [1, 2, 1]])
    assert upper_corner(factors).tolist() == [False, False, False, True, True, False]


def test_a_score_beyond_the_declared_range_fails() -> None:
    """Mutual information in nats over entropy in bits, or the other way round: perfect codes reach 1 / log 2."""
    metric = custom_metric(lambda codes, factors: mig(codes, factors).score / np.log(2), name="nats", range=(0, 1))
    (only,) = stress(metric, cases="faults")
    assert not only.passed
    assert {check.why for check in only.failed} >= {"failed: gave 1.443, outside its range, 0 to 1"}
