"""A study that holds images out: trained, killed, continued and enlarged, and each answer found again by hand."""

import json
import math
import shutil
import time
from itertools import chain, repeat
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from unbraid import load_run
from unbraid.cli.app import main
from unbraid.cli.study_generalisation_command import _short
from unbraid.data import FactorSpace
from unbraid.datasets import leave_out, load
from unbraid.datasets.subset import left_out
from unbraid.files.checksum import without_checksum
from unbraid.metrics import mig
from unbraid.runs.folder import read_codes
from unbraid.scoring.result_columns import agreement_columns, higher_is_better
from unbraid.studies.estimate import estimate
from unbraid.studies.executors import work
from unbraid.studies.holdout.answers import ANSWERS
from unbraid.studies.holdout.evaluation import evaluate_heads, evaluate_regressors, summary
from unbraid.studies.study import Study
from unbraid.studies.study_table import product_from_0

YAML = """
name: tiny
dataset: {name: IMAGES}
families:
  - {name: pca, latents: [1, 4]}
steps: 1
metrics: [mig]
compositional: {factors: [y, x], n_combinations: 2, n_random: 1}
zero_shot: {held_out: "x > 4 and y > 4"}
"""
N_RUNS = 2 + 2 * (2 + 1 + 1)
SPACE = FactorSpace(("y", "x", "shade"), (8, 8, 5), ("ordinal", "ordinal", "ordinal"))


def images(folder: Path) -> Path:
    """A block at 8 x 8 places in 5 shades of grey; 320 images."""
    pictures = np.zeros((len(SPACE), 16, 16), dtype=np.uint8)
    for number, (y, x, shade) in enumerate(SPACE.grid()):
        pictures[number, y : y + 9, x : x + 9] = 50 * (shade + 1)
    path = folder / "images.npz"
    np.savez(path, images=pictures, factors=SPACE.grid(), factor_names=np.array(SPACE.names))
    return path


def opened(folder: Path, text: str = YAML, data: Path | None = None) -> Study:
    (folder / "study.yaml").write_text(text.replace("IMAGES", str(data or images(folder))))
    return Study.load(folder / "study.yaml", out=folder / "out")


@pytest.fixture(scope="module")
def study(tmp_path_factory: pytest.TempPathFactory) -> Study:
    study = opened(tmp_path_factory.mktemp("study"))
    study.run(processes=0)
    return study


@pytest.fixture(scope="module")
def data(study: Study) -> Path:
    return Path(study.config.dataset.name)


def held_out(study: Study) -> list[Path]:
    return sorted(path.parent for path in (study.require_folder() / "runs").glob(f"*/{ANSWERS}"))


def test_runs_without_some_images_are_no_rows(study):
    assert len(list((study.require_folder() / "runs").iterdir())) == N_RUNS
    assert len(study.runs()) == len(study.results()) == 2
    assert {run.state for run in study.runs()} == {"finished"}
    assert len(held_out(study)) == N_RUNS - 2
    assert not any((path / "scores.json").exists() for path in held_out(study))


def test_a_run_opens_what_it_was_trained_on(study):
    left = set()
    for path in held_out(study):
        without = json.loads((path / "config.json").read_text())["dataset"]["options"]["without"]
        dataset = load_run(path, trust=study.part().trusted).dataset()
        left.add(len(dataset))
        if isinstance(without, dict) and "x" in without:
            kept = {tuple(row[:2]) for row in dataset.space.factors(np.arange(len(dataset)))}
            assert len(kept) == 63
            assert (without["y"], without["x"]) not in kept
    assert left == {315, 320 - int(left_out(SPACE, ["x > 4 and y > 4", {"random": 64}]).sum())}


def test_a_run_differs_from_the_one_it_belongs_to_in_its_images_alone(study):
    belong = []
    for path in held_out(study):
        config = load_run(path).config
        for answer in without_checksum(json.loads((path / ANSWERS).read_text())).values():
            whole = load_run(study.require_folder() / "runs" / answer["question"]["of"]).config
            assert {**config, "dataset": None} == {**whole, "dataset": None}
            assert answer["question"]["without"] == config["dataset"]["options"]["without"]
            belong.append(answer["question"]["of"])
    assert sorted(belong) == sorted([run.id for run in study.runs()] * 4)


def test_the_estimate_counts_runs_without_some_images(data, tmp_path):
    found = estimate(opened(tmp_path, YAML, data).part())
    assert [(row.setting, row.runs, row.waiting) for row in found.rows] == [
        (f"latents={latents}, steps=1{kind}", number, number)
        for kinds in ([""], [", compositional", ", zero_shot"])
        for latents in (1, 4)
        for kind, number in zip(kinds, (3, 1) if kinds[0] else (1,), strict=True)
    ]
    assert not (tmp_path / "out").exists()


def on_a_clock(monkeypatch, seconds):
    """Training that takes these seconds of the processor, and nothing else any."""
    clock = [0.0]

    def train(*_):
        clock[0] += next(seconds)
        return [SimpleNamespace(seconds=0.0)]

    monkeypatch.setattr("unbraid.studies.estimate.train_here", train)
    monkeypatch.setattr("unbraid.studies.estimate.process_time", lambda: clock[0])


def test_the_estimate_tells_what_is_done_once_from_steps(tmp_path, monkeypatch):
    """By hand; ForwardVAE has a number of codes that its hyperparameters do not name."""
    text = """
name: balls
dataset: flatland
families: [forward_vae, vae]
steps: 1000
metrics: [d_lsbd]
"""
    taken = iter([9.0, 5.0, 5.1, 5.9, 8.0, 7.0, 7.6])  # cold, 2 steps, 5, 14; cold, 2 steps, 5
    on_a_clock(monkeypatch, taken)
    rows = estimate(opened(tmp_path, text).part()).rows
    assert [row.seconds_per_step for row in rows] == pytest.approx([0.075, 0.2])
    assert [row.seconds for row in rows] == pytest.approx([4.85 + 75, 6.6 + 200], abs=1)  # and scoring
    assert next(taken, None) is None


def test_the_estimate_counts_what_is_compiled_once_and_not_for_each_run(tmp_path, monkeypatch):
    """Scoring that takes .3 s when it is first called, and no time later."""
    text = "name: s\ndataset: {name: sprites, shrink: 8}\nfamilies: [pca]\nseeds: 4\nmetrics: [mig]\n"
    calls = []

    def scored(representation, *_, **__):
        calls.append(len(representation))
        if len(calls) == 1:
            time.sleep(0.3)
        return iter(())

    trained = chain([9.0], repeat(0.5))
    monkeypatch.setattr("unbraid.studies.estimate.score_each", scored)
    on_a_clock(monkeypatch, trained)
    (row,) = estimate(opened(tmp_path, text).part()).rows
    assert calls[0] == 500 < calls[1]
    assert row.seconds == pytest.approx(4 * 0.5, abs=0.2)


def test_columns_are_what_the_runs_say_by_hand(study, data):
    whole = load(str(data))
    table = study.results().set_index("run")
    for run in study.runs():
        accuracies: dict[str, list[Any]] = {"combination": [], "random": []}
        for path in held_out(study):
            model = load_run(path)
            if model.config["hyperparameters"] != run.hyperparameters:
                continue
            without = model.config["dataset"]["options"]["without"]
            part = leave_out(whole, without)
            if isinstance(without, list):
                errors = evaluate_regressors(model.encode, part, "x > 4 and y > 4")
                for name, each in errors.items():
                    row = table.loc[run.id]
                    assert row[f"zero_shot.{name}.gap"] == pytest.approx(each.gap.mean())
                    assert row[f"zero_shot.{name}.ordinary"] == pytest.approx(each.ordinary.mean())
                    assert row[f"zero_shot.{name}.cost"] == pytest.approx(each.gap.mean() - each.ordinary.mean())
            else:
                accuracies["random" if "random" in without else "combination"].append(
                    evaluate_heads(model.encode, part, ["y", "x"])
                )
        assert [len(each) for each in accuracies.values()] == [2, 1]
        for split, prefix in (("combination", ""), ("random", "random_")):
            for head in ("mlp", "linear", "single"):
                done = summary(
                    [each.accuracy[head] for each in accuracies[split]], [each.chance for each in accuracies[split]]
                )
                columns = [f"compositional.{head}.{prefix}{name}" for name in ("y", "x", "both")]
                assert table.loc[run.id, columns].tolist() == pytest.approx(done.score.tolist())
    assert "compositional.mlp.random_both_spread" not in table
    assert (table["compositional.mlp.both_spread"] >= 0).all()
    one, four = table["compositional.mlp.random_both"]
    assert one < 0.5 < four  # one component does not tell the place


def test_a_metric_of_the_held_out_factors_is_the_product_of_what_it_says_of_each_alone(study):
    table = study.results().set_index("run")
    for run in study.runs():
        codes, factors = read_codes(run.path).codes, SPACE.grid()
        of_each = [mig(codes, factors[:, [place]]).score for place in (0, 1)]  # y and x, without shade
        assert table.loc[run.id, "mig.held_out"] == pytest.approx(of_each[0] * of_each[1])
    # Components of equal variance are any rotation of each other, and may tie for both factors.
    assert table["mig.held_out"].max() > 0
    assert higher_is_better("mig.held_out")
    assert "mig.held_out" not in agreement_columns(table)


def test_two_factors_worse_than_chance_do_not_make_a_good_product():
    assert product_from_0([-0.5, -0.5]) == 0 == product_from_0([-0.02, 0.7])
    assert product_from_0([0.5, 0.5]) == 0.25
    assert math.isnan(product_from_0([math.nan, 0.5])), "what is not defined stays so"


def test_the_files_hold_every_answer(study):
    folder = study.require_folder() / "generalisation"
    compositional, zero_shot = (
        json.loads((folder / f"{kind}.json").read_text()) for kind in ("compositional", "zero_shot")
    )
    table = study.results().set_index("run")
    assert [run["run"] for run in compositional["runs"]] == table.index.tolist()
    for run in compositional["runs"]:
        assert run["setting"] == table.setting[run["run"]]
        assert {split: len(answers) for split, answers in run["answers"].items()} == {"combination": 2, "random": 1}
        assert run["columns"] == pytest.approx(table.loc[run["run"], list(run["columns"])].to_dict())
    for run in zero_shot["runs"]:
        (answer,) = run["answers"]["gap"]
        assert np.mean(list(answer["errors"]["lasso"]["gap"].values())) == run["columns"]["zero_shot.lasso.gap"]


def test_what_is_compared_with_metrics_and_which_way_is_better(study):
    chosen = [name for name in agreement_columns(study.results()) if name.startswith(("compositional.", "zero_shot."))]
    heads = [f"compositional.{head}.{name}" for head in ("mlp", "linear", "single") for name in ("y", "x", "both")]
    assert chosen == [*heads, *(f"zero_shot.{each}.{part}" for each in ("lasso", "forest") for part in ("gap", "cost"))]
    assert {higher_is_better(name) for name in heads} == {True}
    assert {higher_is_better(f"zero_shot.lasso.{part}") for part in ("gap", "ordinary", "cost")} == {False}
    assert higher_is_better("compositional.mlp.both_spread") is None


def times(study: Study, name: str) -> dict[str, int]:
    return {path.parent.name: path.stat().st_mtime_ns for path in (study.require_folder() / "runs").glob(f"*/{name}")}


def test_nothing_is_done_twice(study):
    before = times(study, "weights.safetensors"), times(study, ANSWERS)
    table = study.results()
    study.run(processes=0)
    assert (times(study, "weights.safetensors"), times(study, ANSWERS)) == before
    assert study.results().equals(table)


def test_killed_between_training_and_answering_only_answers_are_missing(tmp_path, monkeypatch, study, data):
    class Killed(BaseException):
        pass

    def kill(*_: object) -> None:
        raise Killed

    begun = opened(tmp_path, data=data)
    monkeypatch.setattr(work, "complete_answers", kill)
    with pytest.raises(Killed):
        begun.run(processes=0)
    monkeypatch.undo()
    weights = times(begun, "weights.safetensors")
    assert len(weights) == 3  # both models of the study, and the first without some images
    assert not any(name.startswith(("compositional.", "zero_shot.")) for name in begun.results())
    begun.run(processes=0)
    assert {name: times(begun, "weights.safetensors")[name] for name in weights} == weights
    assert begun.results().drop(columns="seconds").equals(study.results().drop(columns="seconds"))


def test_a_missing_answer_leaves_the_columns_out_until_it_is_there(tmp_path, study):
    folder = tmp_path / "copy"
    shutil.copytree(study.require_folder(), folder)
    copy = Study.load(folder, trust=study.part().trusted)
    path = next(p for p in held_out(copy) if '"random"' not in (p / "config.json").read_text())
    (path / ANSWERS).unlink()
    table, lost = copy.results().set_index("run"), "compositional.mlp.both"
    assert table[lost].isna().sum() == 1
    assert table["compositional.mlp.random_both"].notna().all()
    before = times(copy, "weights.safetensors")
    copy.run(processes=0)
    assert times(copy, "weights.safetensors") == before
    assert copy.results().equals(study.results())
    (path / ANSWERS).write_text("{")
    with pytest.warns(UserWarning, match=r"held_out.json is damaged .*; it counts as missing"):
        assert copy.results().set_index("run")[lost].isna().sum() == 1
    with pytest.warns(UserWarning, match="counts as missing"):
        copy.run(processes=0)
    assert copy.results().equals(study.results())


def test_a_larger_study_adds_only_what_is_new(tmp_path, study, data):
    shutil.copytree(study.require_folder(), tmp_path / "out")
    larger = opened(tmp_path, YAML.replace("n_combinations: 2, n_random: 1", "n_combinations: 3, n_random: 1"), data)
    before = times(larger, ANSWERS)
    larger.run(processes=0)
    after = times(larger, ANSWERS)
    assert len(after) == len(before) + 2
    assert {name: after[name] for name in before} == before
    assert larger.results()["compositional.mlp.both"].notna().all()
    smaller = opened(tmp_path, YAML, data)
    assert smaller.results().equals(study.results())
    other = opened(tmp_path, YAML.replace("factors: [y, x]", "factors: [x, y]"), data)
    assert not any(name.startswith("compositional.") for name in other.results())


def test_families_that_need_a_full_grid_are_refused_before_anything_is_done(tmp_path, data):
    told = YAML.replace("{name: pca, latents: [1, 4]}", "{name: ada_gvae, network: dense, pairs: 10}")
    with pytest.raises(
        ValueError, match="compositional: without some images, Ada-GVAE cannot be trained on this dataset"
    ):
        opened(tmp_path, told, data).run(processes=0)
    assert not (tmp_path / "out").exists()


def test_the_command_shows_means_over_seeds(study, monkeypatch, capsys):
    folder = study.require_folder()
    monkeypatch.setattr("sys.argv", ["unbraid", "study", "generalisation", str(folder), "--json", "-"])
    main()
    found = json.loads(capsys.readouterr().out)
    kept = {kind: json.loads((folder / "generalisation" / f"{kind}.json").read_text()) for kind in found}
    assert found == {kind: without_checksum(content) for kind, content in kept.items()}
    assert found.keys() == {"compositional", "zero_shot"}
    monkeypatch.setattr("sys.argv", ["unbraid", "study", "generalisation", str(folder)])
    main()
    shown = capsys.readouterr().out
    row = study.results().iloc[0]
    line = next(line for line in shown.splitlines() if "latents=1" in line and "MLP" in line)
    assert line.split()[-3:] == [f"{row[f'compositional.mlp.{name}']:.3f}" for name in ("y", "x", "both")]
    line = next(line for line in shown.splitlines() if "latents=1" in line and "lasso" in line)
    assert line.split()[-3:] == [f"{row[f'zero_shot.lasso.{name}']:.3f}" for name in ("gap", "ordinary", "cost")]
    assert "scored 6 of 6 runs trained without some images" in shown
    monkeypatch.setattr("sys.argv", ["unbraid", "study", "status", str(folder)])
    main()
    said = capsys.readouterr().out
    assert "compositional: scored 6 of 6 runs trained without some images" in said
    assert "zero_shot: scored 2 of 2 runs" in said
    assert [_short(each).text for each in ([0.1, None, 0.3], [0.25], [None])] == ["0.200 ± 0.141", "0.250", "-"]
