"""Codes and labels from files of any kind, several models side by side, ranking without labels."""

import csv
import json
import weakref
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import unbraid
from unbraid.data import Representation
from unbraid.datasets.own_images import is_path
from unbraid.files.table_formats import Table, latex
from unbraid.runs.model_list import Models
from unbraid.runs.score_run import score_path

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


def test_latex_escapes_whatever_names_hold() -> None:
    text = latex(Table(["a_b & 50%", "{x}~\\"], []))
    assert r"a b \& 50\% & \{x\}\textasciitilde{}\textbackslash{} \\" in text.splitlines()
