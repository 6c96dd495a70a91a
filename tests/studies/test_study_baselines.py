"""Baselines without training beside the runs of a study: scored once, shown everywhere, compared with nothing."""

import json
import shutil
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from typer.testing import CliRunner

import unbraid
from tests.studies.study_examples import written
from unbraid.cli.app import app
from unbraid.runs.run import open_run
from unbraid.scoring.result_columns import agreement_columns, headline_columns, higher_is_better, numbers
from unbraid.studies.added import add, encode_sample
from unbraid.studies.study import Study
from unbraid.studies.study_baselines import no_better_runs, summaries, untrained_codes
from unbraid.studies.study_page import page_content
from unbraid.studies.study_record import StudyProgress

METRICS = ["mig", "factor_leakage", "mig_exact"]
YAML = """
name: small
dataset: {name: square, positions: 8, shrink: 4}
families:
  - {name: beta_vae, beta: [1, 4], network: dense, latents: 3}
  - {name: vae, network: dense, latents: 3, seeds: [1]}
  - {name: pca, latents: 4}
seeds: 2
steps: 6
batch_size: 8
precision: float32
device: cpu
metrics: [mig, factor_leakage, mig_exact]
baselines: true
"""
TITLES = ["random projection", "PCA", "untrained encoder"]


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("study")
    Study.load(written(folder, YAML), folder / "out").run(processes=0)
    return folder / "out"


@pytest.fixture
def study(made: Path, tmp_path: Path) -> Study:
    shutil.copytree(made, tmp_path / "out")
    return Study.load(tmp_path / "out")


def again(study: Study, text: str = YAML) -> tuple[Study, list[Any]]:
    """The study run once more by this YAML, and what it said that it did after the runs."""
    folder = study.require_folder()
    told: list[StudyProgress] = []
    found = Study.load(written(folder.parent, text), folder)
    found.run(processes=0, progress=told.append)
    return found, [each.after for each in told if each.after]


def invoke(*arguments: str | Path) -> str:
    done = CliRunner().invoke(app, [str(each) for each in arguments])
    assert done.exception is None, done.output
    return done.stdout


def files(folder: Path) -> dict[str, bytes]:
    return {str(path.relative_to(folder)): path.read_bytes() for path in folder.rglob("*") if path.is_file()}


def test_networks_that_begin_alike_are_no_two_untrained_models(study: Study) -> None:
    """A β-TCVAE begins with the weights of the VAE of its seed: among each other they would score as copies do."""
    more = YAML.replace("  - {name: pca", "  - {name: beta_tcvae, network: dense, latents: 3}\n  - {name: pca")
    found = untrained_codes(again(study, more)[0].snapshot())
    assert len(found) == 2, "one of each seed"
    assert not np.allclose(found[0], found[1])


def test_every_run_is_held_against_what_it_is_held_against_when_scored_alone(made: Path) -> None:
    study = Study.load(made)
    frame, decided = study.results().set_index("run"), set()
    beside = study.baselines().groupby(["baseline", "codes"])
    for run in study.runs():
        opened = open_run(run.path)
        card = unbraid.score(opened.codes(), metrics=METRICS, baselines=opened.baselines())
        worse = []
        for name, scored in card.scored.items():
            best = (max if scored.metric.higher_is_better else min)(scored.baselines.values(), default=None)
            column = f"{name}.{scored.metric.headline}"
            found = frame.loc[run.id].get(f"baseline.{column}", np.nan)
            assert found == best if best is not None else np.isnan(found)
            for title, value in scored.baselines.items():
                assert value in beside.get_group((title, opened.n_codes))[column].tolist()
            ahead = best is None or (scored.headline - best) * (1 if scored.metric.higher_is_better else -1) > 0
            worse += [] if ahead else [name]
            if best is not None:
                decided.add((ahead, scored.metric.higher_is_better))
        assert frame.loc[run.id, "above_baselines"] == (f"no: {', '.join(worse)}" if worse else "yes")
        assert ("untrained encoder" in card.scored["mig"].baselines) == (run.family != "pca")
    assert decided >= {(True, True), (False, True), (False, False)}, "lower is better of factor_leakage"


def test_runs_share_what_does_not_depend_on_them(made: Path) -> None:
    """Two widths, and two networks before their first step: vae and beta_vae begin as the same."""
    rows = Study.load(made).baselines()
    projection, pca, untrained = TITLES
    assert [*zip(rows["baseline"], rows["codes"], rows["runs"], strict=True)][:4] == [
        (projection, 3, 5), (projection, 4, 2), (pca, 3, 5), (pca, 4, 2),
    ]  # fmt: skip
    assert sorted(rows["runs"][4:]) == [2, 3]
    assert set(rows["baseline"][4:]) == {untrained}
    assert sorted(path.name for path in (made / "baselines").iterdir()) == sorted(rows["id"])
    assert rows["mig_exact.score"].isna().tolist() == [True] * 4 + [False] * 2
    given = zip(rows.to_dict("records"), [1.0, 2.0, 3.0, 4.0, 5.0, 7.0], strict=True)
    kinds = summaries([{**row, "scores": {"a": value}} for row, value in given])
    assert [(each["number"], each["scores"]["a"]) for each in kinds[-2:]] == [(1, (4, 4, 4)), (2, (6, 5, 7))]


def test_it_continues_where_it_was_stopped_and_does_nothing_twice(study: Study, made: Path) -> None:
    folder, before = study.require_folder() / "baselines", files(made)
    first, second, third = sorted(folder.iterdir())[:3]
    shutil.rmtree(first)
    (folder / f".{first.name}.part").mkdir()
    (second / "scores.json").unlink()
    scores = json.loads((third / "scores.json").read_text())
    del scores["metrics"]["mig"], scores["computed_with"]["mig"], scores["checksum"]
    (third / "scores.json").write_text(json.dumps(scores))
    _, told = again(study)
    assert [each[1:] for each in told] == [(0, 3), (1, 3), (2, 3)]
    after = files(study.require_folder())
    assert after.keys() == before.keys()
    for name, content in before.items():
        if name.startswith("baselines/") and not name.endswith("scores.json"):
            assert after[name] == content
    pd.testing.assert_frame_equal(
        Study.load(study.require_folder()).baselines(), Study.load(made).baselines(), check_exact=True
    )
    _, told = again(study)
    assert told == []


def test_another_metric_costs_that_metric_alone_and_no_key_shows_none(study: Study) -> None:
    place = sorted((study.require_folder() / "baselines").iterdir())[0]
    seconds = json.loads((place / "scores.json").read_text())["metrics"]["mig"]["seconds"]
    more, told = again(study, YAML.replace("mig_exact", "mig_exact, sap"))
    assert len(told) == 6
    assert json.loads((place / "scores.json").read_text())["metrics"]["mig"]["seconds"] == seconds
    assert not np.isnan(numbers(more.results(), "baseline.sap.score")).any()
    without, told = again(study, YAML.replace("baselines: true", ""))
    frame = without.results()
    assert (told, len(without.baselines())) == ([], 0)
    assert set(frame["above_baselines"]) == {None}
    assert not [name for name in frame.columns if name.startswith("baseline.")]


def test_baselines_are_in_no_group_and_no_comparison_unless_they_are_added(study: Study) -> None:
    frame = study.results()
    assert set(frame["family"]) == {"beta_vae", "vae", "pca"}
    assert {name for name in study.rank(compare="all").runs} == set(frame["run"])
    assert not [name for name in (*headline_columns(frame), *agreement_columns(frame)) if "baseline" in name]
    assert [higher_is_better(f"{each}factor_leakage.nm_auc") for each in ("", "baseline.")] == [False] * 2
    own = {f"{each}lab.own:fn.score": [1.0] for each in ("", "baseline.")}
    assert headline_columns(pd.DataFrame(own)) == ["lab.own:fn.score"]
    codes = next((study.require_folder() / "baselines").glob("pca-3-*")) / "codes.npz"
    [run] = add(study, [codes], family="PCA baseline", names=["components"])
    added = study.results().set_index("run").loc[run.id]
    assert added["mig.score"] == added["baseline.mig.score"]
    assert added["above_baselines"].startswith("no: mig"), "as good as itself"
    wide = encode_sample(lambda images: images.reshape(len(images), -1)[:, :5] / 255, study)
    wide.save(study.require_folder().parent / "wide.npz")
    add(study, [study.require_folder().parent / "wide.npz"], family="mine")
    rows = study.baselines()
    assert rows.loc[rows["codes"] == 5, "baseline"].tolist() == TITLES[:2], "it has no network"


def test_damaged_codes_that_were_added_stop_no_other_model(study: Study) -> None:
    before = study.baselines()
    codes = next((study.require_folder() / "baselines").glob("pca-3-*")) / "codes.npz"
    [run] = add(study, [codes], family="mine", names=["mine"])
    (run.path / "codes.npz").write_bytes(b"no zip archive")
    again(study)
    frame = study.results()
    pd.testing.assert_frame_equal(study.baselines(), before)
    assert frame.loc[frame["above_baselines"].isna(), "run"].tolist() == ["mine"]
    assert set(study.rank(compare="all").left_out) == {"mine"}


@pytest.mark.lengthy
def test_every_view_of_the_ranking_marks_what_is_no_better(
    study: Study, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", "300")
    frame, folder = study.results(), study.require_folder()
    worse = no_better_runs(frame)
    assert 0 < len(worse["mig.score"]) <= len(frame)
    assert worse["mig_exact.score"] <= set(frame.loc[frame["baseline.mig_exact.score"].notna(), "run"])
    printed = invoke("rank", folder, "--compare", "all", "--csv", tmp_path / "runs.csv")
    lines = printed.splitlines()
    for run, own in zip(frame["run"], frame["mig.score"], strict=True):
        line = next(each for each in lines if run in each.split())
        assert f" {own:.3f}{'†' if run in worse['mig.score'] else ' '}" in line
    kept = pd.read_csv(tmp_path / "runs.csv").set_index("run")["above_baselines"]
    assert kept.to_dict() == frame.set_index("run")["above_baselines"].to_dict()
    told = json.loads(invoke("rank", folder, "--compare", "all", "--json", "-"))
    assert [each["codes"] for each in told["baselines"]] == [3, 4, 3, 4, 3, 3]
    assert {each["run"]: each["above_baselines"] for each in told["runs"]} == kept.to_dict()
    content = page_content(study.snapshot(), frame, folder)
    data = content["data"]
    assert [frame["run"][place] for place in data["no_better"]["mig.score"]] == [
        run for run in frame["run"] if run in worse["mig.score"]
    ]
    assert [(each["baseline"], each["number"]) for each in data["baselines"]][-1] == (TITLES[2], 2)
    invoke("export", folder, "--out", tmp_path / "all.csv")
