"""Codes and labels from files of any kind, several models side by side, ranking without labels."""

import csv
import html
import json
import shlex
import weakref
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import typer.main

import unbraid
from unbraid.cli.app import app
from unbraid.cli.show_command import print_line, print_table
from unbraid.data import Representation
from unbraid.datasets.own_images import is_path
from unbraid.files.table_formats import Table, latex
from unbraid.runs.model_list import Models
from unbraid.runs.score_run import score_path
from unbraid.scoring.card_tables import score_table

RNG = np.random.default_rng(0)
N = 200
SHAPE = RNG.integers(3, size=N)
HUE = RNG.random(N) * 360
CODES = np.rint(8 * np.stack([SHAPE + RNG.normal(0, 0.1, N), np.cos(np.radians(HUE)), RNG.normal(size=N)], axis=1))
NAMES = np.array(["ellipse", "heart", "square"])


@pytest.fixture
def home(tmp_path: Path) -> Path:
    with (tmp_path / "labels.csv").open("w", newline="") as file:
        writer = csv.writer(file)
        writer.writerow(["shape", "hue", "spoilt"])
        writer.writerows(
            [NAMES[s] if k % 10 else "", f"{h!r}", "a" if k % 2 else 1]
            for k, (s, h) in enumerate(zip(SHAPE, HUE.tolist(), strict=True))
        )
    np.save(tmp_path / "codes.npy", CODES)
    return tmp_path


def codes_files(home: Path) -> list[Path]:
    pandas, torch = pytest.importorskip("pandas"), pytest.importorskip("torch")
    from safetensors.torch import save_file

    np.savez(home / "codes.npz", anything=CODES)
    save_file({"z": torch.tensor(CODES, dtype=torch.bfloat16)}, home / "codes.safetensors")
    frame = pandas.DataFrame(CODES, columns=["neuron a", "neuron b", "neuron c"])
    frame.to_csv(home / "named.csv", index=False)
    frame.to_parquet(home / "codes.parquet")
    np.savetxt(home / "bare.csv", CODES, delimiter=",")
    return [
        home / name
        for name in ("codes.npy", "codes.npz", "codes.safetensors", "named.csv", "bare.csv", "codes.parquet")
    ]


def test_codes_are_read_from_files_of_any_kind(home: Path) -> None:
    for path in codes_files(home):
        held = Representation.load(path)
        assert held.codes.tolist() == CODES.tolist(), path
        assert held.names == ()


def test_labels_beside_codes_are_scored_as_in_python(unbraid_cli, home: Path) -> None:
    out = home / "scores.json"
    code, printed, error = unbraid_cli(
        "score", str(home / "codes.npy"), "--labels", str(home / "labels.csv"), "--columns", "shape,hue",
        "--kinds", "shape=categorical", "--period", "hue=360", "--metrics", "mig,snc", "--json", str(out),
    )  # fmt: skip
    assert code == 0, error
    used = np.arange(N) % 10 > 0
    labels = {"shape": NAMES[SHAPE][used], "hue": HUE[used]}
    card = unbraid.score(CODES[used], labels, period={"hue": 360}, metrics=["mig", "snc"])
    written = json.loads(out.read_text())
    assert {name: each["values"] for name, each in written["metrics"].items()} == {
        name: card.scored[name].values for name in card
    }
    assert written["input"]["factors"][0]["levels"] == list(NAMES)
    assert "180 of 200 rows are scored" in printed


def test_models_are_compared_by_some_of_the_labels_beside_them(unbraid_cli, home: Path) -> None:
    other = CODES + np.random.default_rng(1).standard_normal(CODES.shape)
    np.save(home / "other.npy", other)
    code, _, error = unbraid_cli(
        "compare", str(home / "codes.npy"), str(home / "other.npy"), "--labels", str(home / "labels.csv"),
        "--factors", "shape,hue", "--period", "hue=360", "--missing", str(NAMES[0]), "--metrics", "mig",
        "--resamples", "2", "--json", str(home / "compared.json"),
    )  # fmt: skip
    assert code == 0, error
    used = (np.arange(N) % 10 > 0) & (SHAPE != 0)
    labels = {"shape": NAMES[SHAPE][used], "hue": HUE[used]}
    scores = [unbraid.score(z[used], labels, period={"hue": 360}, metrics="mig")["mig"].score for z in (CODES, other)]
    compared = json.loads((home / "compared.json").read_text())
    assert compared["differences"][0]["difference"] == pytest.approx(scores[0] - scores[1], abs=1e-12)


def test_factors_with_commas_in_their_names_are_named_in_quotes(unbraid_cli, home: Path) -> None:
    with (home / "sized.csv").open("w", newline="") as file:
        writer = csv.writer(file)
        writer.writerow(["length, cm", 'say "a,b"', "hue"])
        writer.writerows((s, k % 3, int(h) // 90) for k, (s, h) in enumerate(zip(SHAPE, HUE.tolist(), strict=True)))
    wanted = ["score", str(home / "codes.npy"), "--labels", str(home / "sized.csv"), "--metrics", "mig", "--json", "-"]
    chosen = ["--factors", '"length, cm",hue', "--unwanted", '"say ""a,b"""', "--kinds", '"length, cm"=categorical']
    code, printed, error = unbraid_cli(*wanted, *chosen)
    assert code == 0, error
    content = json.loads(printed)
    assert [(each["name"], each["kind"]) for each in content["input"]["factors"]] == [
        ("length, cm", "categorical"), ("hue", "ordinal"),
    ]  # fmt: skip
    assert 'unwanted(say "a,b")' in content["metrics"]
    unbraid_cli(*wanted, *chosen, "--html", str(home / "page.html"))
    command = html.unescape((home / "page.html").read_text())
    assert shlex.join(["--factors", '"length, cm",hue', "--unwanted", '"say ""a,b"""']) in command


@pytest.mark.parametrize("suffix", [".npz", ".safetensors", ".parquet"])
def test_codes_are_not_taken_for_labels(unbraid_cli, home: Path, suffix: str) -> None:
    held = Representation(CODES, np.column_stack([SHAPE, 1 - SHAPE]))
    held.save(home / f"both{suffix}")
    words = ["score", str(home / "codes.npy"), "--metrics", "mig", "--labels", str(home / f"both{suffix}")]
    code, _, error = unbraid_cli(*words)
    assert code == 2
    assert "it holds codes" in error
    assert "--factors names the columns to use" in error
    assert unbraid_cli(*words, "--factors", "factor_factor_0" if suffix == ".parquet" else "factor_0")[0] == 0


def test_a_table_may_hold_codes_and_labels_of_text(home: Path) -> None:
    pandas = pytest.importorskip("pandas")
    frame = pandas.DataFrame(CODES, columns=["code_0", "code_1", "code_2"]).assign(factor_shape=NAMES[SHAPE])
    frame.to_csv(home / "both.csv", index=False)
    frame.to_parquet(home / "both.parquet")
    for name in ("both.csv", "both.parquet"):
        held = Representation.load(home / name)
        assert (held.codes.tolist(), held.factors[:, 0].tolist()) == (CODES.tolist(), SHAPE.tolist())
        assert held.levels == (tuple(NAMES),)


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["--columns", "shap"], "did you mean 'shape'"),
        (["--columns", "spoilt,hue", "--kinds", "hue=round"], "there are categorical, ordinal, continuous, cyclic"),
        (["--columns", "hue", "--period", "hue=0"], "above 0"),
        (["--columns", "hue", "--period", "hue=whole"], "is not a number, such as 360 or 2pi"),
        (["--columns", "hue", "--period", "hue"], "write NAME=VALUE"),
    ],
)
def test_options_that_fit_no_label_are_one_line(unbraid_cli, home: Path, arguments: list[str], said: str) -> None:
    files = ["score", str(home / "codes.npy"), "--labels", str(home / "labels.csv"), "--metrics", "mig"]
    code, _, error = unbraid_cli(*files, *arguments)
    assert code == 2
    assert said in error
    assert error.count("\n") == 1


def test_labels_of_another_length_name_both(unbraid_cli, home: Path) -> None:
    np.save(home / "short.npy", CODES[:-1])
    code, _, error = unbraid_cli("score", str(home / "short.npy"), "--labels", str(home / "labels.csv"))
    assert code == 2
    assert "codes (199, 3) and labels of 200 rows" in error


@pytest.mark.parametrize(
    ("header", "said"),
    [
        ("{'descr': '<f8', 'fortran_order': False, 'shape': (1000000000000, 8), }", "more than the"),
        ("{'descr': '<f8', 'fortran_order': False, 'shape': (-1, 8), }", "declares the shape (-1, 8)"),
        ("{'descr': '|O', 'fortran_order': False, 'shape': (2, 2), }", "pickled objects, which are never loaded"),
        ("{'descr': ", "its header cannot be read"),
    ],
)
def test_what_a_header_declares_is_compared_with_the_file(tmp_path: Path, header: str, said: str) -> None:
    padded = header.encode() + b" " * (117 - len(header)) + b"\n"
    array = b"\x93NUMPY\x01\x00" + len(padded).to_bytes(2, "little") + padded + bytes(64)
    (tmp_path / "bad.npy").write_bytes(array)
    with pytest.raises(ValueError) as told:
        Representation.load(tmp_path / "bad.npy")
    assert said in str(told.value)
    import zipfile

    with zipfile.ZipFile(tmp_path / "bad.npz", "w") as archive:
        archive.writestr("codes.npy", array)
    with pytest.raises(ValueError) as told:
        Representation.load(tmp_path / "bad.npz")
    assert said in str(told.value)


def test_three_models_in_a_row_each_as_latex(unbraid_cli, home: Path) -> None:
    for seed in range(3):
        noise = np.random.default_rng(seed).normal(0, 2, CODES.shape)
        np.save(home / f"beta_{seed}.npy", CODES + noise)
    files = [str(home / f"beta_{seed}.npy") for seed in range(3)]
    outs = [home / f"table.{suffix}" for suffix in ("tex", "md", "csv")]
    code, printed, error = unbraid_cli(
        "score", *files, "--labels", str(home / "labels.csv"), "--columns", "shape,hue", "--period", "hue=360",
        "--metrics", "mig,factor_leakage", "--latex", str(outs[0]), "--markdown", str(outs[1]), "--csv", str(outs[2]),
    )  # fmt: skip
    assert code == 0, error
    labels = {"shape": np.where(np.arange(N) % 10 > 0, NAMES[SHAPE], ""), "hue": HUE}
    scores = [
        unbraid.score(np.load(file), labels, missing="", period={"hue": 360}, metrics=["mig"])["mig"].score
        for file in files
    ]
    with outs[2].open(newline="") as file:
        rows = {row.pop("model"): row for row in csv.DictReader(file)}
    assert [float(rows[f"beta_{seed}"]["mig"]) for seed in range(3)] == scores
    tex = outs[0].read_text().splitlines()
    assert tex[:4] == [
        r"\begin{adjustbox}{max width=\linewidth}",
        r"\begin{tabular}{lrr}",
        r"\toprule",
        r"model & mig $\uparrow$ & factor leakage $\downarrow$ \\",
    ]
    order = np.argsort(scores)[::-1]  # the best first
    assert [line.split(" & ")[:2] for line in tex[5:9]] == [
        [rf"beta\_{order[0]}", rf"\textbf{{{scores[order[0]]:.3f}}}"],
        *([rf"beta\_{seed}", f"{scores[seed]:.3f}"] for seed in order[1:]),
        [r"mean $\pm$ sd", rf"{np.mean(scores):.3f} $\pm$ {np.std(scores, ddof=1):.3f}"],
    ]
    assert outs[1].read_text().startswith("| model | mig ↑ | factor_leakage ↓ |\n| --- | ---: |")
    assert "mean ± sd" in printed
    assert "180 of 200 rows" in printed
    code, _, error = unbraid_cli("score", *files[:2], "--html", str(home / "x.html"))
    assert code == 2
    assert "--html is for one model" in error


def test_latex_escapes_whatever_names_hold() -> None:
    text = latex(Table(["a_b & 50%", "{x}~\\"], []))
    assert r"a b \& 50\% & \{x\}\textasciitilde{}\textbackslash{} \\" in text.splitlines()


def test_a_model_without_a_metric_has_a_dash() -> None:
    one = unbraid.score(CODES, SHAPE[:, None], metrics=["mig", "snc"])
    other = unbraid.score(CODES, SHAPE[:, None], metrics=["mig"])
    head, *rows = score_table({"one": one, "other": other}).texts
    assert head == ["model", "mig ↑", "snc ↑"]
    assert rows[1] == ["other", rows[0][1], "-"]
    assert "±" not in rows[2][2]


def test_bare_codes_of_groups_are_ranked_without_labels(unbraid_cli, home: Path) -> None:
    (home / "codes").mkdir()
    for group, spread in (("beta1", 4.0), ("beta4", 0.2)):
        for seed in range(3):
            rng = np.random.default_rng(seed)
            codes = CODES[:, rng.permutation(3)] + rng.normal(0, spread, CODES.shape)
            np.save(home / "codes" / f"{group}-{seed}.npy", codes)
    out = home / "ranking.json"
    code, printed, error = unbraid_cli(
        "rank", str(home / "codes"), "--by", "name", "--similarity", "spearman", "--json", str(out)
    )
    assert code == 0, error
    assert "best model of beta1: " in printed
    content = json.loads(out.read_text())
    assert "beta4" in content["best"]
    assert sorted(content["groups"].values()) == ["beta1"] * 3 + ["beta4"] * 3
    # Models of other groups are not compared.
    assert sum(value is not None for row in content["pairs"] for value in row) == 2 * 3 * 2
    code, _, error = unbraid_cli("rank", str(home / "codes"), "--by", "a,b")
    assert code == 2
    assert "2 labels for 6 files" in error


def test_codes_alone_have_no_scores_and_it_is_said_how_to_get_them(unbraid_cli, home: Path) -> None:
    code, _, error = unbraid_cli("score", str(home / "codes.npy"))
    assert code == 2
    assert "no factors to score against: give labels" in error
    assert error.count("\n") == 1


def test_codes_alone_with_a_posterior_make_a_page_without_factors(unbraid_cli, home: Path) -> None:
    Representation(CODES / 8, log_variances=np.full(CODES.shape, -1.0)).save(home / "alone.npz")
    code, _, error = unbraid_cli("score", str(home / "alone.npz"), "--html", str(home / "page.html"))
    assert code == 0, error
    assert "total correlation" in (home / "page.html").read_text().lower()


def test_help_is_short_too(unbraid_cli) -> None:
    code, printed, _ = unbraid_cli("score", "-h")
    assert code == 0
    assert "--labels" in printed


def test_completion_can_be_installed(unbraid_cli) -> None:
    assert "--install-completion" in unbraid_cli("--help")[1]


@pytest.fixture
def nine(home: Path) -> Path:
    """Nine models of three noise levels, whose labels are in their files."""
    (home / "models").mkdir()
    for level, noise in (("low", 0.1), ("mid", 2.0), ("high", 6.0)):
        for seed in range(3):
            codes = CODES + np.random.default_rng(seed).normal(0, noise, CODES.shape)
            Representation(codes, SHAPE[:, None], names=("shape",)).save(home / "models" / f"{level}-{seed}.npz")
    return home / "models"


def test_many_models_have_a_row_each_the_best_first_and_means_of_groups(unbraid_cli, nine: Path) -> None:
    outs = [nine / f"t.{suffix}" for suffix in ("csv", "json", "tex", "md")]
    options = [
        word
        for name, out in zip(("csv", "json", "latex", "markdown"), outs, strict=True)
        for word in (f"--{name}", str(out))
    ]
    code, printed, error = unbraid_cli(
        "score", str(nine), "--metrics", "mig,factor_leakage", "--sort", "factor_leakage", "--by", "name", *options
    )  # fmt: skip
    assert code == 0, error
    cards = {
        path.stem: unbraid.score(Representation.load(path), metrics=["mig", "factor_leakage"])
        for path in nine.glob("*.npz")
    }
    leakage = {name: card.scored["factor_leakage"].headline for name, card in cards.items()}
    order = sorted(leakage, key=lambda name: leakage[name])
    with outs[0].open(newline="") as file:
        rows = list(csv.DictReader(file))
    assert [row["model"] for row in rows] == order
    assert [float(row["factor_leakage"]) for row in rows] == [leakage[name] for name in order]
    assert [row["name"] for row in rows] == [name.split("-")[0] for name in order]
    shown = [line.split()[0] for line in printed.splitlines() if line.split() and line.split()[0] in cards]
    assert shown == order
    content = json.loads(outs[1].read_text())
    assert [row["model"] for row in content["models"]] == order
    assert content["cards"].keys() == cards.keys()
    means = {row["name"]: row for row in content["means"]}
    assert list(means) == ["low", "mid", "high"]
    low = [cards[f"low-{seed}"]["mig"].score for seed in range(3)]
    assert (means["low"]["mig"], means["low"]["mig.sd"]) == pytest.approx((np.mean(low), np.std(low, ddof=1)))
    assert f"low & 3 & \\textbf{{{np.mean(low):.3f} $\\pm$ {np.std(low, ddof=1):.3f}}} & " in outs[2].read_text()
    assert outs[3].read_text().startswith("| name | models | mig ↑ | factor_leakage ↓ |\n")
    assert "means by name" in printed


def test_a_folder_of_codes_whose_suffixes_are_capitals_is_read(tmp_path: Path) -> None:
    files = [tmp_path / name for name in ("a.NPZ", "b.Npy", "c.CSV")]
    for path in (*files, tmp_path / "notes.txt"):
        path.touch()
    assert Models([tmp_path]).paths == files
    assert not is_path("no such.csvx", ())
    assert is_path("no such.CSV", ())


@pytest.mark.parametrize(("by", "groups"), [("folder", {"models"}), ("(low|mid|high)", {"low", "mid", "high"})])
def test_models_are_grouped_by_folders_and_patterns(unbraid_cli, nine: Path, by: str, groups: set[str]) -> None:
    code, printed, error = unbraid_cli("score", str(nine), "--metrics", "mig", "--by", by, "--csv", "-")
    assert code == 0, error
    assert {row[by] for row in csv.DictReader(printed.splitlines())} == groups


@pytest.mark.parametrize(
    ("by", "said"),
    [
        ("hyper.beta", "is no run, whose columns have names; say folder, name, or a pattern"),
        ("(low)", "it does not match"), ("(", "not a pattern"), ("a,b", "2 labels for 9 files"),
    ],
)  # fmt: skip
def test_groups_that_are_none_are_refused_in_one_line(unbraid_cli, nine: Path, by: str, said: str) -> None:
    code, printed, error = unbraid_cli("score", str(nine), "--metrics", "mig", "--by", by)
    assert (code, printed, error.count("\n")) == (2, "", 1)
    assert said in error


def test_a_score_that_is_worse_than_its_bound_is_a_line_and_code_3(unbraid_cli, nine: Path) -> None:
    file = str(nine / "low-0.npz")
    given = ["score", file, "--metrics", "mig,factor_leakage"]
    scores = unbraid.score(Representation.load(file), metrics=["mig", "factor_leakage"])
    mig, leakage = scores["mig"].score, scores.scored["factor_leakage"].headline
    assert unbraid_cli(*given, "--fail-under", f"mig={mig - 0.01},factor_leakage={leakage + 0.01}")[0] == 0
    code, printed, error = unbraid_cli(
        *given, "--fail-under", f"mig={mig + 0.01:.3f},factor_leakage={leakage - 0.01:.3f}"
    )
    assert code == 3
    assert "mig" in printed
    assert error.splitlines() == [
        f"unbraid: mig is {mig:.3g}, below {mig + 0.01:.3f}".rstrip("0"),
        f"unbraid: factor_leakage is {leakage:.3g}, above {leakage - 0.01:.3f}".rstrip("0"),
    ]
    code, _, error = unbraid_cli("score", str(nine), "--metrics", "mig", "--fail-under", "mig=2")
    assert (code, len(error.splitlines())) == (3, 9)


def test_a_dash_prints_one_format_and_nothing_else(unbraid_cli, nine: Path) -> None:
    given = ["score", str(nine), "--metrics", "mig"]
    assert unbraid_cli(*given, "--markdown", "-")[1].startswith("| model | mig ↑ |\n")
    assert unbraid_cli(*given, "--latex", "-")[1].startswith(
        "\\begin{adjustbox}{max width=\\linewidth}\n\\begin{tabular}{lr}\n"
    )
    assert json.loads(unbraid_cli(*given, "--json", "-")[1]).keys() == {"unbraid", "models", "failed", "cards"}


def test_a_file_of_codes_becomes_another_and_a_page(unbraid_cli, nine: Path) -> None:
    file, page = str(nine / "low-0.npz"), nine / "page.html"
    assert unbraid_cli("export", file, "--out", str(nine / "codes.safetensors"))[0] == 0
    assert (Representation.load(nine / "codes.safetensors").codes == Representation.load(file).codes).all()
    assert unbraid_cli("report", file, "--out", str(page))[0] == 0
    assert "Mutual information gap" in page.read_text()


def test_exported_codes_say_which_rows_are_left_out_and_never_replace_their_own_file(
    unbraid_cli, tmp_path: Path
) -> None:
    file, folder = tmp_path / "codes.csv", tmp_path / "model"
    file.write_text("code_0,factor_a\n1,\n2,x\n3,y\n")
    assert unbraid_cli("export", file, "--out", tmp_path / "codes.parquet")[2].startswith("note: 2 of 3 rows ")
    folder.mkdir()
    kept = (tmp_path / "codes.parquet").rename(folder / "codes.parquet")
    before = kept.read_bytes()
    for source in (kept, folder):
        code, _, error = unbraid_cli("export", source, "--out", kept)
        assert (code, error.splitlines()[-1]) == (
            2,
            f"unbraid: --out {kept}: that is the file of the codes itself, which may hold more; name another",
        )
    assert kept.read_bytes() == before


EVERYWHERE = ("csv", "latex", "markdown", "json")


def test_every_table_can_be_had_by_the_same_options() -> None:
    found: dict[str, set[tuple[str, str]]] = {name: set() for name in EVERYWHERE}
    for name, command in walk(typer.main.get_command(app), ""):
        options = {option.name: option for option in command.params if option.name in EVERYWHERE}
        assert len(options) in (0, len(EVERYWHERE)), name
        for each, option in options.items():
            found[each].add((option.help, option.metavar))
    assert all(len(said) == 1 for said in found.values()), found


def walk(command, path: str):
    for name, child in getattr(command, "commands", {}).items():
        yield from walk(child, f"{path} {name}")
    if not hasattr(command, "commands"):
        yield path, command


def test_names_between_colons_are_no_pictures(capsys: pytest.CaptureFixture[str]) -> None:
    print_line("my_lab:ok: 4 models, my_lab:fire: 3")
    print_table(Table(["a:ok:"], [["b:fire:"]], "l", title="c:ok:"))
    printed = capsys.readouterr().out
    assert "my_lab:ok: 4 models, my_lab:fire: 3" in printed
    assert all(each in printed for each in ("a:ok:", "b:fire:", "c:ok:"))


def test_codes_of_several_models_are_not_all_in_memory(
    home: Path, unbraid_cli, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What is written of each model is what is written of it alone."""
    files = [home / f"model{number}.npz" for number in range(3)]
    for number, path in enumerate(files):
        labels = {"shape": SHAPE, "hue": HUE}
        Representation.of(CODES + number, labels, period={"hue": 360}, code_names=["a", "b", "c"]).save(path)
    options = ("--metrics", "mig,mcc", "--json", "-")
    alone = {path.stem: json.loads(unbraid_cli("score", path, *options)[1]) for path in files}
    held: list[weakref.ref] = []

    def scored(path: Path, *args: Any, **kwargs: Any) -> unbraid.ScoreCard:
        in_memory.append(sum(each() is not None for each in held))
        card = score_path(path, *args, **kwargs)
        held.append(weakref.ref(card.representation.codes))
        return card

    in_memory: list[int] = []
    monkeypatch.setattr("unbraid.runs.score_run.score_path", scored)
    code, printed, error = unbraid_cli("score", *files, *options)
    assert code == 0, error
    assert in_memory == [0, 0, 0]
    together = json.loads(printed)["cards"]
    for card in (*together.values(), *alone.values()):
        for metric in card["metrics"].values():
            del metric["seconds"]
    assert together == alone


def test_a_card_that_was_read_is_shown_with_its_rows(tmp_path: Path) -> None:
    card = unbraid.score(CODES, {"shape": SHAPE}, metrics="mig")
    card.save(tmp_path / "card.json")
    assert repr(unbraid.ScoreCard.load(tmp_path / "card.json")) == repr(card)
