"""The ranking of a study's folder, in its table of results and from the command line."""

import json
import os
import shutil
from dataclasses import replace
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from typer.testing import CliRunner

import unbraid
from tests.studies.study_examples import SMALL, written
from unbraid import Representation
from unbraid.base.errors import ModelsFailed
from unbraid.cli.app import app
from unbraid.metrics import udr
from unbraid.metrics._shared.inputs import standardised
from unbraid.ranking.ranking import RankingOptions
from unbraid.studies.snapshot import RunView
from unbraid.studies.study import Study
from unbraid.studies.study_page import study_data, study_page
from unbraid.studies.study_page_matrices import rankings
from unbraid.studies.study_ranking import kept_ranking, rank_study
from unbraid.studies.study_record import StudyProgress

# Whatever has a KL counts: after six steps, no latent tells anything of its image.
YAML = SMALL + "udr: {similarity: spearman, compare: same-hyperparameters, informative: kl, kl_threshold: 0}\n"


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Two settings of a β-VAE and PCA, two seeds each, trained for a moment and ranked."""
    folder = tmp_path_factory.mktemp("study")
    Study.load(written(folder, YAML), folder / "out").run(processes=0)
    return folder / "out"


@pytest.fixture
def study(made: Path, tmp_path: Path) -> Study:
    shutil.copytree(made, tmp_path / "out")
    return Study.load(tmp_path / "out")


def with_learnt_codes(study: Study) -> list[RunView]:
    """The β-VAEs of the study, whose six steps taught them nothing, with codes as if they had found both factors."""
    runs = [run for run in study.runs() if run.family == "beta_vae"]
    for number, run in enumerate(runs):
        loaded, rng = Representation.load(run.path / "codes.safetensors"), np.random.default_rng(number)
        y, x = standardised(loaded.factors.astype(float)).T
        codes = np.stack([x, y, x * y], axis=1)[:, :: 1 - 2 * (number % 2)]
        codes = codes + (0.1 + 0.2 * ("4" in run.setting)) * rng.standard_normal(codes.shape)
        variances = np.full(codes.shape, -3.0, np.float32)  # a file of another size would be called damaged
        replace(loaded, codes=codes.astype(np.float32), log_variances=variances).save(run.path / "codes.safetensors")
    return runs


def invoke(*arguments: str | Path) -> str:
    done = CliRunner().invoke(app, [str(each) for each in arguments])
    assert done.exception is None, done.output
    return done.stdout


def test_the_table_of_results_has_what_udr_gives_for_the_codes_on_disk(study: Study) -> None:
    frame = study.results().set_index("run")
    for _, rows in frame.groupby(["family", "setting"]):
        representations = [
            Representation.load(study.require_folder() / "runs" / run / "codes.safetensors") for run in rows.index
        ]
        kl = [each.mean_kl() for each in representations]
        known = [each for each in kl if each is not None]
        result = udr([each.codes for each in representations], kl=known or None, kl_threshold=0, similarity="spearman")
        assert rows["udr.score"].tolist() == pytest.approx(result.scores.tolist())
        assert rows["udr.informative"].tolist() == result.informative.tolist()
    assert (study.require_folder() / "udr" / "spearman.npz").is_file()
    saved = pd.read_parquet(study.require_folder() / "results.parquet")
    assert saved["udr.score"].tolist() == frame["udr.score"].tolist()


def test_where_nothing_can_be_kept_a_note_says_so(study: Study, monkeypatch: pytest.MonkeyPatch) -> None:
    kept = study.rank()
    shutil.rmtree(study.require_folder() / "udr")
    monkeypatch.setattr(os, "access", lambda _, mode: mode != os.W_OK)
    told = f"note: {study.require_folder() / 'udr'} cannot be written: this ranking is not kept there"
    assert told in invoke("rank", study.require_folder())
    assert not list((study.require_folder() / "udr").glob("*.npz"))
    monkeypatch.undo()
    assert "cannot be written" not in invoke("rank", study.require_folder())
    assert study.rank().notes == kept.notes


def test_interrupted_while_it_ranks_a_study_has_lost_nothing_and_continues(made: Path, study: Study) -> None:
    shutil.rmtree(study.require_folder() / "udr")
    (study.require_folder() / "results.parquet").unlink()
    written(study.require_folder().parent, YAML)
    again = Study.load(study.require_folder().parent / "study.yaml", study.require_folder())
    told: list[tuple[str, int, int]] = []

    def stop(sent: StudyProgress) -> None:
        if sent.after is not None:
            told.append(sent.after)
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        again.run(progress=stop)
    assert told == [("comparing models", 1, 6)]
    table = pd.read_parquet(study.require_folder() / "results.parquet")
    assert list(table["state"]) == ["finished"] * 6
    assert "udr.score" not in table
    sent: list[StudyProgress] = []
    again.run(progress=sent.append)
    assert [each.after for each in sent if each.after] == [("comparing models", done, 6) for done in range(1, 7)]
    assert not any(each.steps_taken for each in sent)
    pd.testing.assert_frame_equal(
        pd.read_parquet(study.require_folder() / "results.parquet"), pd.read_parquet(made / "results.parquet")
    )


def test_models_with_weights_above_1_are_named_where_one_is_chosen(study: Study) -> None:
    """Two runs learned nothing: latents of a tiny variance, one noise and their own thousandth of another."""
    runs = [run for run in study.runs() if run.family == "beta_vae"]
    loaded = Representation.load(runs[0].path / "codes.safetensors")
    rng = np.random.default_rng(0)
    apart = rng.standard_normal((len(loaded), 3))
    one_line = apart[:, :1] + 0.02 * apart * [0, 1, 1]
    for run, codes in zip(runs, (apart, one_line, apart, apart[:, ::-1]), strict=True):
        variances = np.full(codes.shape, -17.0, np.float32)
        kept = replace(loaded, codes=(0.001 * codes).astype(np.float32), log_variances=variances)
        kept.save(run.path / "codes.safetensors")
    shown = invoke("rank", study.require_folder(), "--similarity", "lasso", "--alpha", "cv")
    (note,) = [line for line in shown.splitlines() if line.startswith("note: lasso")]
    assert f"raise the scores of {runs[0].id} (" in note
    assert f"are predicted from {runs[1].id} (" in note
    (best,) = [line for line in shown.splitlines() if line.startswith("best model, leaving out pca")]
    assert any(run.id in best for run in runs[2:4]), "none that the note doubts"
    assert "lasso weights" not in invoke("rank", study.require_folder())
    shown_by_report = [each["notes"] for each in rankings(study.snapshot(), study.results())]
    assert [note.removeprefix("note: ") in notes for notes in shown_by_report] == [True, False]


def test_the_codes_of_each_run_are_read_once(study: Study, monkeypatch: pytest.MonkeyPatch) -> None:
    read: list[Path] = []
    load = Representation.load

    def counted(path: Path) -> Representation:
        read.append(path)
        return load(path)

    monkeypatch.setattr(Representation, "load", counted)
    rank_study(study.snapshot(), RankingOptions(compare="all"))
    assert len(read) == len(set(read)) == 6


def test_a_ranking_of_other_runs_or_options_is_not_shown(study: Study) -> None:
    assert kept_ranking(study.snapshot()) is not None
    snapshot = study.snapshot()
    assert kept_ranking(replace(snapshot, runs=snapshot.runs[1:])) is None
    rank_study(
        snapshot, RankingOptions("spearman", n_comparisons=1, seed=3, informative="kl")
    )  # not what the YAML says, so not kept
    assert kept_ranking(study.snapshot()) is not None
    rank_study(study.snapshot(), RankingOptions("spearman", "all"))
    assert (study.require_folder() / "udr" / "spearman-all.npz").is_file()
    assert kept_ranking(study.snapshot()) is not None
    assert study.config.udr is not None
    stricter = study.config.udr.model_copy(update={"kl_threshold": 0.5})
    changed = study.config.model_copy(update={"udr": stricter})
    assert kept_ranking(replace(study.snapshot(), config=changed)) is None
    lasso = study.config.model_copy(update={"udr": None})
    assert kept_ranking(replace(study.snapshot(), config=lasso)) is None


def test_unfinished_diverged_and_unreadable_runs_are_left_out_with_the_reason(study: Study) -> None:
    runs = [run for run in study.runs() if run.family == "beta_vae"]
    status = json.loads((runs[0].path / "status.json").read_text())
    changed = status | {"checksum": "", "state": "diverged", "reason": "the loss is not finite", "step": 3}
    (runs[0].path / "status.json").write_text(json.dumps(changed))
    (runs[2].path / "codes.safetensors").write_bytes(b"nothing")
    shutil.rmtree(runs[3].path)
    ranking = rank_study(study.snapshot())
    assert set(ranking.families) == {"pca"}
    assert ranking.left_out[runs[0].id] == "diverged: step 3: the loss is not finite"
    assert ranking.left_out[runs[1].id] == "there is no other run of its setting to compare it with"
    assert "codes.safetensors" in ranking.left_out[runs[2].id]
    assert ranking.left_out[runs[3].id] == "not finished"
    done = CliRunner().invoke(app, ["rank", str(study.require_folder())])
    assert isinstance(done.exception, ModelsFailed)
    shown = done.stdout
    assert "left out: " + runs[0].id + " (diverged: step 3: the loss is not finite)" in shown
    assert "no best model: notes question the scores of each model that has learnt" in shown


def test_where_nothing_was_learnt_no_model_is_chosen(study: Study) -> None:
    ranking = rank_study(study.snapshot(), RankingOptions())
    assert "4 runs have no informative latent and score 0" in ranking.notes
    assert ranking.best is None


def test_the_labels_are_opened_after_the_choice(study: Study) -> None:
    with_learnt_codes(study)
    content = json.loads(invoke("rank", study.require_folder(), "--compare", "all", "--json", "-"))
    said = invoke("rank", study.require_folder(), "--compare", "all").splitlines()[-1]
    assert said.startswith("the labels, opened afterwards, say of it: mig ")
    scores = {run["run"]: run["mig.score"] for run in content["runs"]}
    own = scores[content["best"]]
    place = 1 + sum(score > own for score in scores.values())
    assert f"mig {own:.3f} (place {place} of 6, best {max(scores.values()):.3f})" in said


def test_rank_writes_tables_for_a_paper(study: Study, tmp_path: Path) -> None:
    invoke("rank", study.require_folder(), "--csv", tmp_path / "runs.csv", "--latex", tmp_path / "settings.tex")
    ranking = rank_study(study.snapshot())
    runs = pd.read_csv(tmp_path / "runs.csv")
    assert runs["run"].tolist() == [ranking.runs[at] for at in ranking.best_first]
    assert np.allclose(runs["udr.score"], np.sort(ranking.scores)[::-1])
    rows = (tmp_path / "settings.tex").read_text().splitlines()
    assert rows[3].startswith("family & setting & runs & UDR & mig")
    settings = ranking.per_setting()
    assert len(rows) == 8 + len(settings)
    for family, median in zip(settings["family"], settings["median"], strict=True):
        name = family.replace("_", "\\_")
        assert any(row.startswith(f"{name} & ") and f" & {median:.3f} & " in row for row in rows)


def test_rank_as_json_has_paths_metrics_and_no_nan(study: Study) -> None:
    with_learnt_codes(study)
    content = json.loads(invoke("rank", study.require_folder(), "--similarity", "lasso", "--json", "-"))
    assert content["options"]["similarity"] == "lasso"
    assert len(content["runs"]) == 6
    first = content["runs"][0]
    assert first.keys() >= {"rank", "run", "udr.score", "udr.informative", "mig.score", "seed", "path"}
    assert Path(first["path"]).is_dir()
    assert {each["family"]: bool(each["warning"]) for each in content["suitability"]} == {
        "beta_vae": False,
        "pca": True,
    }
    assert content["best_path"].endswith(content["best"])
    assert (study.require_folder() / "udr" / "lasso.npz").is_file()


def test_compare_prints_means_and_differences_of_groups(
    study: Study, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", "120")
    shown = invoke("compare", study.require_folder(), "--columns", "mig.score", "--csv", tmp_path / "a.csv")
    assert "beta_vae - pca" in shown
    assert "note: groups hold several settings" in shown
    frame = study.results()
    scores = {family: rows["mig.score"] for family, rows in frame.groupby("family")}
    expected = np.median(scores["beta_vae"].to_numpy()[:, None] - scores["pca"].to_numpy())
    assert pd.read_csv(tmp_path / "a.csv")["shift"].tolist() == pytest.approx([expected])
    content = json.loads(invoke("compare", study.require_folder(), "--by", "hyper.beta", "--json", "-"))
    assert {each["group"] for each in content["groups"]} == {"1", "4"}
    assert content["differences"][0]["low"] is None, "two and two runs never tell"


HARDLY = """
name: hardly
dataset: {name: sprites, shrink: 4, without: "orientation > 0 or scale > 0"}
families: [{name: beta_vae, beta: [1, 4], network: dense, latents: 3, learning_rate: 0.001}]
seeds: 3
steps: 30
precision: float32
device: cpu
metrics: [mig]
baselines: true
udr: {similarity: lasso}
"""


@pytest.mark.lengthy
def test_of_six_hardly_trained_models_none_is_the_best_wherever_one_asks(tmp_path: Path) -> None:
    """With the information of the channel, with the KL of the paper, and by their codes alone."""
    study = Study.load(written(tmp_path, HARDLY), tmp_path / "out")
    study.run(processes=0)
    folders = [run.path for run in study.runs()]
    assert len(folders) == 6
    ranking = study.rank()
    assert (ranking.best, ranking.why_none()) == (None, "none of 6 models has learnt anything: " + WHY)
    assert ranking.untrained is not None
    by_kl = study.rank(informative="kl", kl_threshold=0.0)
    assert by_kl.scores.max() > 0.1, "they agree"
    assert by_kl.best is None
    assert "no best model: none of 6 models has learnt anything" in invoke("rank", tmp_path / "out")
    page = study_page(study.snapshot(), study.results())
    assert f"no best model: {ranking.why_none()}" in page
    frame = study.results()
    assert set(frame["collapsed"]) == {"yes"}
    codes = unbraid.rank([Representation.load(folder / "codes.safetensors").codes for folder in folders])
    assert codes.scores.max() > 0.1
    assert codes.best is None


WHY = "the latents of each have less than one bit of information on a sample"


def silenced(run: RunView) -> None:
    loaded = Representation.load(run.path / "codes.safetensors")
    codes = np.random.default_rng(0).standard_normal(loaded.codes.shape)
    wide = replace(loaded, codes=(0.001 * codes).astype(np.float32), log_variances=np.zeros(codes.shape, np.float32))
    wide.save(run.path / "codes.safetensors")


def test_where_most_runs_of_each_setting_learnt_nothing_the_command_the_page_and_python_name_none(study: Study) -> None:
    runs = with_learnt_codes(study)
    for run in (runs[0], runs[2]):
        silenced(run)
    ranking = rank_study(study.snapshot())
    assert set(ranking.silent) == {runs[0].id, runs[2].id}
    why = ranking.why_none()
    assert why == "notes question the scores of each model that has learnt; the others have learnt nothing", (
        "one of two is no majority"
    )
    said = invoke("rank", study.require_folder())
    assert f"no best model: {why}" in said
    assert "best setting" not in said
    content = json.loads(invoke("rank", study.require_folder(), "--json", "-"))
    assert (content["best"], content["best_setting"], content["why_none"]) == (None, None, why)
    assert {runs[0].id, runs[2].id} <= set(content["learnt_nothing"])
    data = study_data(study.snapshot(), study.results(), study.require_folder())
    assert data["verdict"] == [f"no best model: {why}"]
    assert len(data["not_best"]) == 6


def test_the_command_the_page_and_python_name_one_best_and_one_median(study: Study) -> None:
    runs = with_learnt_codes(study)
    silenced(next(run for run in runs if run.setting == runs[-1].setting))
    ranking = rank_study(study.snapshot())
    chosen = ranking.choose()
    assert chosen is not None
    assert chosen.setting == runs[0].setting != runs[-1].setting, "of the other setting half has learnt nothing"
    medians = ranking.per_setting().set_index(["family", "setting"])["median"]
    assert chosen.median == medians[chosen.family, chosen.setting]
    said = invoke("rank", study.require_folder()).splitlines()
    (line,) = [each for each in said if each.startswith("best setting, leaving out pca: beta_vae beta=1 ")]
    assert line.endswith(f"(median {chosen.median:.3f})")
    (row,) = [each for each in said if each.split()[:2] == ["beta_vae", "beta=1"]]
    assert row.split()[3] == f"{chosen.median:.3f}", "the same number in the table"
    frame = study.results()
    data = study_data(study.snapshot(), frame, study.require_folder())
    assert data["verdict"] == [line, f"best model, leaving out pca: {chosen.run} ({chosen.score:.3f})"]
    assert frame["run"].tolist().index(chosen.run) not in data["not_best"]
    assert json.loads(invoke("rank", study.require_folder(), "--json", "-"))["best"] == chosen.run == ranking.best
