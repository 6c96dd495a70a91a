"""`unbraid score`: what options say of a file's own factors, bounds that gate, names of columns, codes one by one."""

import csv
import json
import shlex
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from scipy import sparse

from tests.conftest import Cli
from unbraid import Representation, ScoreCard
from unbraid.cli.score_command import _worse as worse
from unbraid.runs.labelled_codes import Labels, read_labelled
from unbraid.scoring.score_page import page_content

RNG = np.random.default_rng(0)
HUE, POSITION = RNG.random(300) * 360, RNG.integers(0, 7, 300)
SHAPE = RNG.choice(["sq", "heart", "ell"], 300)
TURN = 2 * np.pi
CODES = np.column_stack(
    [np.cos(HUE * TURN / 360), np.sin(HUE * TURN / 360), np.cos(POSITION * TURN / 8), np.sin(POSITION * TURN / 8)]
)


@pytest.fixture
def own(tmp_path: Path) -> Path:
    """Codes with factors of their own: an angle, levels with names, and seven of eight places of a circle."""
    held = Representation.of(
        CODES, {"hue": HUE, "shape": SHAPE, "pos": POSITION},
        period={"hue": 360}, kinds={"pos": "cyclic"}, sizes=[0, 3, 8],
    )  # fmt: skip
    held.save(tmp_path / "h.npz")
    return tmp_path / "h.npz"


@pytest.fixture
def grid(tmp_path: Path) -> Path:
    factors = np.column_stack([np.repeat(range(4), 75), np.tile(range(3), 100)])
    Representation(factors + 0.1 * RNG.random((300, 2)), factors, kinds=("ordinal",) * 2).save(tmp_path / "grid.npz")
    return tmp_path / "grid.npz"


@pytest.mark.parametrize("options", [("--kinds", "shape=categorical"), ("--missing", "-1"), ("--kinds", "pos=cyclic")])
def test_options_leave_what_a_file_says_of_other_factors(own: Path, unbraid_cli: Cli, options: tuple[str, ...]) -> None:
    given = ("score", own, "--metrics", "r2", "--json", "-")
    code, before, error = unbraid_cli(*given)
    assert code == 0, error
    code, after, error = unbraid_cli(*given, *options)
    assert code == 0, error
    one, other = json.loads(before), json.loads(after)
    assert other["metrics"]["r2"]["values"] == one["metrics"]["r2"]["values"]
    assert other["input"]["factors"] == one["input"]["factors"]
    assert [note for note in other["input"]["notes"] if "period" in note] == ["hue: angles of period 360, as radians"]


def test_a_factor_that_options_name_is_read_anew(own: Path) -> None:
    before = Representation.load(own)
    held, _ = read_labelled(own, Labels(kinds={"shape": "ordinal", "hue": "continuous"}))
    assert held.kinds == ("continuous", "ordinal", "cyclic")
    assert held.levels == before.levels
    assert held.sizes == (0, 3, 8)
    assert held.periods == ()
    np.testing.assert_allclose(held.factors[:, 0], HUE)  # degrees again, as they were labelled
    assert held.notes == ()  # nothing is guessed, and no angle is left
    turned, _ = read_labelled(own, Labels(period={"pos": 7}))
    assert (turned.sizes, len(turned.levels[2])) == ((0, 3, 7), 7)
    assert turned.factors[:, :2].tolist() == before.factors[:, :2].tolist()


def test_rows_are_missing_by_the_labels_and_not_by_the_numbers_in_the_file(own: Path) -> None:
    held, _ = read_labelled(own, Labels(missing=["heart", "2", 2.0]))
    kept = (SHAPE != "heart") & (POSITION != 2)
    np.testing.assert_array_equal(held.codes, CODES[kept])
    assert held.levels == Representation.load(own).levels
    assert held.notes[-1].startswith(f"{kept.sum()} of 300 rows are scored, those that lack no label (missing: shape ")


@pytest.mark.parametrize(
    ("options", "said"),
    [
        (("--period", "hue=360"), "the file holds 'hue' as an angle, in radians; leave its period out"),
        (("--period", "shape=3"), "the file holds 'shape' as levels with names (ell, heart, ...)"),
        (("--kinds", "shap=ordinal"), "did you mean 'shape'?"),
        (("--kinds", "shape=round"), "there are categorical, ordinal, continuous, cyclic"),
    ],
)
def test_options_that_do_not_fit_the_file_are_one_line(
    own: Path, unbraid_cli: Cli, options: tuple[str, ...], said: str
) -> None:
    code, printed, error = unbraid_cli("score", own, "--metrics", "r2", *options)
    assert (code, printed, error.count("\n")) == (2, "", 1)
    assert said in error


@pytest.mark.parametrize(
    ("bounds", "said"),
    [
        ("mig=nan", "'nan' is not a number"),
        ("mig=.9,mig=.1", "mig has a bound already, 0.9"),
        ("mig(bins=10)=.9,mig(bins = 10)=.1", "mig(bins=10) has a bound already"),
        ("mig(bins=11)=.9", "is not among the metrics"),
    ],
)
def test_bounds_that_would_not_hold_are_one_line(grid: Path, unbraid_cli: Cli, bounds: str, said: str) -> None:
    code, printed, error = unbraid_cli("score", grid, "--metrics", "mig,mig(bins=10)", "--fail-under", bounds)
    assert (code, printed, error.count("\n")) == (2, "", 1)
    assert said in error


@pytest.mark.parametrize(
    ("score", "higher", "said"),
    [
        (0.29996, True, ["mig is 0.29996, below 0.3"]),
        (0.30004, False, ["mig is 0.30004, above 0.3"]),
        (0.21234, True, ["mig is 0.212, below 0.3"]),
        (0.3, True, []),
    ],
)
def test_a_score_worse_than_its_bound_is_not_shown_as_the_bound(score: float, higher: bool, said: list[str]) -> None:
    card: Any = SimpleNamespace(
        scored={"mig": SimpleNamespace(headline=score, metric=SimpleNamespace(higher_is_better=higher))}
    )
    assert worse({"mig": 0.3}, card, "") == said


@pytest.mark.parametrize("name", ["mig(bins=10)", "mig( bins = 10 )"])
def test_metrics_with_arguments_have_bounds_and_sort(grid: Path, unbraid_cli: Cli, name: str) -> None:
    given = ("score", grid, "--metrics", "sap,mig(bins=10)")
    assert unbraid_cli(*given, "--fail-under", f"{name}=.1")[0] == 0
    code, _, error = unbraid_cli(*given, "--fail-under", f"{name}=2")
    assert (code, "mig(bins=10) is" in error) == (3, True)
    other = Representation.load(grid)
    noisy = grid.with_name("noisy.npz")
    Representation(other.codes + 5 * RNG.random((300, 2)), other.factors, kinds=other.kinds).save(noisy)
    code, printed, error = unbraid_cli(*given, noisy, "--sort", name, "--csv", "-")
    assert code == 0, error
    assert [row["model"] for row in csv.DictReader(printed.splitlines())] == ["grid", "noisy"]


def test_a_key_of_configs_that_is_called_as_a_column_keeps_both(tmp_path: Path, unbraid_cli: Cli) -> None:
    factors = RNG.integers(0, 3, (120, 2))
    for number, model in enumerate(("vae", "vae", "ae")):
        folder = tmp_path / "runs" / f"m{number}"
        folder.mkdir(parents=True)
        np.save(folder / "z.npy", factors + 0.1 * RNG.random((120, 2)))
        np.savez(folder / "labels.npz", shape=factors[:, 0], hue=factors[:, 1])
        (folder / "config.json").write_text(json.dumps({"model": model, "mig": f"{model}!", "seed": number}))
    given = ("score", tmp_path / "runs", "--metrics", "mig", "--by")
    code, printed, error = unbraid_cli(*given, "model", "--json", "-")
    assert code == 0, error
    read = json.loads(printed)
    assert {each["model"]: each["config.model"] for each in read["models"]} == {"m0": "vae", "m1": "vae", "m2": "ae"}
    assert {each["config.model"]: each["models"] for each in read["means"]} == {"vae": 2, "ae": 1}
    for by in ("model", "mig"):
        heads = unbraid_cli(*given, by, "--csv", "-")[1].splitlines()[0].split(",")
        assert len(set(heads)) == len(heads)
        assert {"model", "mig", f"config.{by}"} <= set(heads)


def test_names_of_factors_may_hold_an_equals_sign(tmp_path: Path, unbraid_cli: Cli) -> None:
    factors = np.stack(np.unravel_index(np.arange(240) % 12, (3, 4)), axis=1)
    np.save(tmp_path / "codes.npy", factors.astype(float))
    np.savez(tmp_path / "labels.npz", **{"a=b": factors[:, 0], "hue = 2": factors[:, 1] * 90.0})
    command = ("score", tmp_path / "codes.npy", "--labels", tmp_path / "labels.npz", "--metrics", "mig", "--json", "-")
    code, printed, _ = unbraid_cli(*command, "--kinds", "a=b=categorical", "--period", "hue = 2=360")
    assert code == 0
    assert [(each["name"], each["kind"], each["size"]) for each in json.loads(printed)["input"]["factors"]] == [
        ("a=b", "categorical", 3),
        ("hue = 2", "cyclic", 4),
    ]


def test_what_stands_for_no_label_has_no_name_of_a_factor(tmp_path: Path, unbraid_cli: Cli) -> None:
    Representation(RNG.normal(size=(60, 2)), RNG.integers(-1, 3, (60, 1)), names=("size",)).save(tmp_path / "a.npz")
    code, printed, error = unbraid_cli("score", tmp_path / "a.npz", "--missing", "size=-1", "--metrics", "mig")
    assert (code, printed) == (2, "")
    assert error == "unbraid: --missing size=-1: write the value alone, such as -1; it counts for all factors\n"


def test_the_command_on_a_page_gives_the_same_numbers(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, unbraid_cli: Cli
) -> None:
    monkeypatch.chdir(tmp_path)
    factors = np.stack(np.unravel_index(np.arange(240) % 12, (3, 4)), axis=1)
    codes = factors + RNG.normal(0, 0.3, factors.shape)
    Representation(codes, factors[::-1], names=("size", "hue")).save("codes.npz")  # other factors than those beside it
    np.savez("my labels.npz", size=factors[:, 0], hue=factors[:, 1] * 90, who=np.arange(240) // 12)
    told = ("--labels", "my labels.npz", "--groups", "who", "--period", "hue=360", "--missing", "0")
    sure = ("--confidence", ".9", "--resamples", "4")
    how = ("--metrics", "mig,sap", "--json", "a.json", "--html", "a.html")
    assert unbraid_cli("score", "codes.npz", *told, *sure, *how)[0] == 0
    card = ScoreCard.load("a.json")
    again = page_content(card)["card"]["reproduce"]
    assert again["python"] is None
    assert "<h3>Python</h3>" not in Path("a.html").read_text(encoding="utf-8")
    command = shlex.split(again["command"])
    assert command[:2] == ["unbraid", "score"]
    assert unbraid_cli(*command[1:], "--json", "b.json")[0] == 0
    here, there = (json.loads(Path(name).read_text(encoding="utf-8")) for name in ("a.json", "b.json"))
    assert here["input"] == there["input"]
    for name, each in here["metrics"].items():
        assert each["values"] == pytest.approx(there["metrics"][name]["values"])
        assert each["intervals"]["times"] == there["metrics"][name]["intervals"]["times"] == 4


def test_sparse_codes_have_rows_held_out_as_full_ones_do(tmp_path: Path, unbraid_cli: Cli) -> None:
    factors = np.stack(np.unravel_index(np.arange(240) % 12, (3, 4)), axis=1)
    for name, width in (("few", 2), ("many", 129)):
        codes = np.hstack([factors, np.zeros((240, width - 2))])
        sparse.save_npz(tmp_path / f"{name}.npz", sparse.csr_array(codes))
    np.savez(tmp_path / "labels.npz", shape=factors[:, 0], hue=factors[:, 1])
    np.save(tmp_path / "full.npy", factors.astype(float))
    labels = ("--labels", tmp_path / "labels.npz", "--metrics", "mig,zero_shot", "--json", "-")
    asked = (*labels, "--held-out", "shape == 0 and hue == 1")
    (code, printed, _), (_, full, _) = (
        unbraid_cli("score", tmp_path / each, *asked) for each in ("few.npz", "full.npy")
    )
    assert code == 0
    few, other = json.loads(printed), json.loads(full)
    assert few["held_out"] == other["held_out"] == "shape == 0 and hue == 1"
    assert few["metrics"]["zero_shot"]["values"] == other["metrics"]["zero_shot"]["values"]
    code, printed, error = unbraid_cli("score", tmp_path / "many.npz", *asked)
    assert (code, printed, error.count("\n")) == (2, "", 1)
    assert "a full array is needed for held_out" in error
    assert unbraid_cli("score", tmp_path / "many.npz", *labels)[0] == 0


def test_few_sparse_codes_are_scored_in_full_where_that_is_needed(tmp_path: Path, unbraid_cli: Cli) -> None:
    factors = RNG.integers(0, 3, (120, 2))
    codes = sparse.csr_array(factors + RNG.normal(0, 0.1, factors.shape))
    sparse.save_npz(tmp_path / "codes.npz", codes)
    np.savez(tmp_path / "labels.npz", shape=factors[:, 0], hue=factors[:, 1], who=np.arange(120) // 6)
    asked = ("--columns", "shape", "--unwanted", "hue", "--groups", "who", "--metrics", "mig,nk", "--json", "-")
    command = ("score", tmp_path / "codes.npz", "--labels", tmp_path / "labels.npz", *asked)
    (code, printed, _), (_, full, _) = unbraid_cli(*command), unbraid_cli(*command, "--dense")
    assert code == 0
    own, other = (json.loads(text)["metrics"] for text in (printed, full))
    assert list(own) == ["mig", "nk", "unwanted(hue)"]
    assert {name: each["values"] for name, each in own.items()} == {n: each["values"] for n, each in other.items()}


def test_scores_that_cannot_be_kept_are_shown(
    grid: Path, tmp_path: Path, unbraid_cli: Cli, monkeypatch: pytest.MonkeyPatch
) -> None:
    run = tmp_path / "mine"
    run.mkdir()
    grid.rename(run / "codes.npz")
    (run / "config.json").write_text(json.dumps({"family": "mine", "setting": "", "seed": 0}))

    def refused(*_: object) -> None:
        raise PermissionError(13, "Permission denied")

    with monkeypatch.context() as patch:
        patch.setattr("unbraid.studies.run_scores.atomic_write", refused)
        code, printed, said = unbraid_cli("score", run, "--metrics", "r2", "--json", tmp_path / "r2.json")
    assert code == 0
    assert "r2" in printed
    assert f"warning: {run / 'scores.json'}: the scores are not kept there (Permission denied)" in said
    assert json.loads((tmp_path / "r2.json").read_text())["metrics"]["r2"]
    (run / "scores.json").write_text("{")
    code, printed, said = unbraid_cli("score", run, "--metrics", "r2")
    assert code == 0
    assert "r2" in printed
    assert "scores.json" in said


def test_what_sorts_is_asked_for_before_anything_is_scored_and_costs_no_scores(
    grid: Path, unbraid_cli: Cli, monkeypatch: pytest.MonkeyPatch
) -> None:
    other = grid.with_name("other.npz")
    other.write_bytes(grid.read_bytes())
    code, printed, error = unbraid_cli("score", grid, other, "--metrics", "sap,d_lsbd", "--sort", "d_lsbd")
    assert code == 0, error
    assert "note: no model has d_lsbd, and so it sorts none" in printed

    def never(*_: object, **__: object) -> None:
        raise AssertionError("scored")

    monkeypatch.setattr("unbraid.runs.score_run.score_path", never)
    code, printed, error = unbraid_cli("score", grid, other, "--metrics", "sap,d_lsbd", "--sort", "sapp")
    assert (code, printed) == (2, "")
    assert error.startswith("unbraid: --sort sapp: 'sapp' is not among the metrics; did you mean 'sap'?")


def test_values_that_mean_missing_are_looked_for_whatever_the_kind_of_a_factor(tmp_path: Path) -> None:
    """Every row has an age of its own, which the file says is continuous."""
    ages = np.arange(40.0)[:, None]
    Representation(ages, ages, names=("age",), kinds=("continuous",)).save(tmp_path / "ages.npz")
    held, _ = read_labelled(tmp_path / "ages.npz", Labels(missing=[7]))
    assert held.factors[:, 0].tolist() == [age for age in range(40) if age != 7]
    assert held.notes == ("39 of 40 rows are scored, those that lack no label (missing: age 1)",)


def test_a_pickled_column_that_nobody_asks_for_is_left_closed(tmp_path: Path, unbraid_cli: Cli) -> None:
    factors = np.stack(np.unravel_index(np.arange(240) % 12, (3, 4)), axis=1)
    np.save(tmp_path / "codes.npy", factors.astype(float))
    sparse.save_npz(tmp_path / "sparse.npz", sparse.csr_array(factors + 1.0))
    who = np.array([f"image {row}" for row in range(240)], dtype=object)
    np.savez(tmp_path / "labels.npz", size=factors[:, 0], hue=factors[:, 1], who=who)
    labels = ("--labels", tmp_path / "labels.npz", "--metrics", "mig", "--json", "-")
    for codes in ("codes.npy", "sparse.npz"):
        code, printed, error = unbraid_cli("score", tmp_path / codes, *labels, "--factors", "hue,size")
        assert (code, error) == (0, "")
        card = json.loads(printed)
        assert [each["name"] for each in card["input"]["factors"]] == ["hue", "size"]
    # With all columns, or with this one for the groups, it would be read.
    for used in ((), ("--factors", "hue,who"), ("--factors", "hue", "--groups", "who")):
        code, printed, error = unbraid_cli("score", tmp_path / "codes.npy", *labels, *used)
        assert (code, printed) == (2, "")
        assert "labels.npz: not a readable .npz file (array 'who': it holds pickled objects, which are never" in error


def test_an_official_file_of_dsprites_is_a_table_of_labels(tmp_path: Path, unbraid_cli: Cli) -> None:
    """As the published file: pickled metadata, images, and latents as classes and as values, of one colour."""
    classes = np.stack(np.unravel_index(np.arange(240) % 12, (1, 3, 4)), axis=1)
    values = classes * [1, 1, 1 / 6] + [1, 1, 0.5]
    metadata = np.array({"title": "dSprites", "when": pytest.fail}, dtype=object)
    images = np.zeros((240, 8, 8), dtype=np.uint8)
    np.savez(tmp_path / "d.npz", metadata=metadata, imgs=images, latents_classes=classes, latents_values=values)
    np.save(tmp_path / "codes.npy", classes[:, 1:].astype(float))
    command = ("score", tmp_path / "codes.npy", "--labels", tmp_path / "d.npz", "--metrics", "mig", "--json", "-")
    code, printed, error = unbraid_cli(*command)
    assert (code, error) == (0, "")
    factors = json.loads(printed)["input"]["factors"]
    names = ["latents_classes_1", "latents_classes_2", "latents_values_1", "latents_values_2"]
    assert [factor["name"] for factor in factors] == names
    assert "latents_classes_0 (constant), latents_values_0 (constant)" in printed
    code, printed, _ = unbraid_cli(*command, "--factors", "latents_values_2", "--kinds", "latents_values_2=ordinal")
    assert (code, json.loads(printed)["metrics"]["mig"]["values"]["score"]) == (0, pytest.approx(1.0))


def test_means_and_log_variances_of_other_programs_are_codes(tmp_path: Path, unbraid_cli: Cli) -> None:
    factors = np.stack(np.unravel_index(np.arange(240) % 12, (3, 4)), axis=1)
    codes, logvar = factors.astype(float), np.full((240, 2), -4.0)
    np.savez(tmp_path / "vae.npz", mu=codes, logvar=logvar, factors=factors)
    held = Representation.load(tmp_path / "vae.npz")
    assert held.codes.tolist() == codes.tolist()
    assert held.log_variances is not None
    assert held.log_variances.tolist() == logvar.tolist()
    assert "codes are its array mu, log-variances its logvar" in held.notes
    np.savez(tmp_path / "two.npz", mu=codes, z=codes, logvar=logvar)
    code, _, error = unbraid_cli("score", tmp_path / "two.npz")
    assert code == 2
    assert "no array 'codes'; found mu, z, logvar; numpy.savez(path, codes=mu, log_variances=logvar, fact" in error
