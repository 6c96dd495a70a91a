"""What other laboratories are given: records of a shared schema, and numbers of papers beside ours."""

import json
import shutil
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from tests.cli.test_cli import digest
from tests.sharing.test_every_eval_ever import check
from tests.studies.examples import parse, planned_runs
from tests.studies.test_schema import AROUND
from unbraid import load_run
from unbraid.sharing.every_eval_ever import record_path
from unbraid.storage.json_records import read_object
from unbraid.studies.expand import expand
from unbraid.studies.published import check_published
from unbraid.studies.sharing import write_records
from unbraid.studies.store import write_json
from unbraid.studies.study import Study

YAML = """
name: small
dataset: {name: square, positions: 8, shrink: 4}
families: [{name: pca, latents: [3, 4]}]
steps: 1
metrics: [mig, factor_leakage, "tests.studies.examples:spread"]
udr: {similarity: spearman}
published:
  - family: pca
    setting: {latents: 3}
    column: mig.score
    value: 0.25
    source: Doe 2020, table 1
    reason: other images
"""


@pytest.fixture(scope="module")
def study(tmp_path_factory: pytest.TempPathFactory) -> Study:
    folder = tmp_path_factory.mktemp("shared")
    (folder / "study.yaml").write_text(YAML)
    opened = Study.load(folder / "study.yaml", out=folder / "out")
    opened.run(processes=0)
    return opened


def test_a_record_says_what_was_measured_of_what_and_how(study: Study, tmp_path: Path) -> None:
    assert write_records(study.snapshot(), folder=tmp_path / "r", organisation="../My lab", now=12.5) == 2
    files = sorted((tmp_path / "r").rglob("*.json"))
    assert len(files) == 2
    rows = study.results().set_index("run")
    for path in files:
        record: dict[str, Any] = json.loads(path.read_text())
        assert path == tmp_path / "r" / record_path(record)
        check(record)
        model = record["model_info"]["additional_details"]
        assert {model["deployment_type"], model["model_availability"]} == {"self_deployed", "unknown"}
        assert all(isinstance(each, str) for each in model.values())
        row, run = rows.loc[model["run"]], load_run(study.require_folder() / "runs" / model["run"])
        assert record["evaluation_id"] == f"unbraid-square/My-lab/pca-{model['run']}/12.500000"
        results = {each["evaluation_name"]: each for each in record["evaluation_results"]}
        own = "tests.studies.examples:spread.score"
        assert {"mig.score", "factor_leakage.nm_auc", own, "udr.score"} <= results.keys()
        assert "mig.ceiling" not in results  # of which no end is better
        for name, each in results.items():
            metric = each["metric_config"]
            assert each["score_details"]["score"] == row[name]
            assert metric["lower_is_better"] is name.startswith("factor_leakage.")
            assert {metric["score_type"], type(metric["min_score"]), type(metric["max_score"])} <= {
                "continuous",
                str,
                float,
            }
            assert all(isinstance(text, str) for text in each["score_details"]["details"].values())
        mig = results["mig.score"]
        assert (mig["metric_config"]["min_score"], mig["metric_config"]["max_score"]) == (0.0, 1.0)
        assert results[own]["metric_config"]["max_score"] == "Infinity"
        images = mig["source_data"]["additional_details"]
        codes = run.codes()
        assert images["content"] == run.config["dataset"]["content"]
        assert images["codes_sha256"] == digest(codes.codes.astype(float))
        assert images["factors_sha256"] == digest(codes.factors.astype(float))
        said = mig["score_details"]["details"]
        assert ("published" in said) is bool(row["hyper.latents"] == 3)
    with pytest.raises(ValueError, match="is there already; records are written into a new folder"):
        write_records(study.snapshot(), folder=tmp_path / "r")
    assert [path.name for path in tmp_path.iterdir()] == ["r"]


def test_a_record_is_of_the_version_that_scored_and_has_a_place_of_its_own(study: Study, tmp_path: Path) -> None:
    out = shutil.copytree(study.require_folder(), tmp_path / "out")
    for place in (out / "runs").iterdir():
        write_json(place / "scores.json", {**read_object(place / "scores.json"), "unbraid": "0.0.7"})
    snapshot = Study.load(out).snapshot()
    runs = tuple(replace(run, family="my_lab." * 20 + "models:pca") for run in snapshot.runs)
    assert write_records(replace(snapshot, runs=runs), folder=tmp_path / "r", organisation="Lab", now=12.5) == 2
    found = [json.loads(path.read_text()) for path in (tmp_path / "r").rglob("*.json")]
    assert [each["eval_library"] for each in found] == [{"name": "unbraid", "version": "0.0.7"}] * 2


def test_a_number_of_a_paper_stands_beside_ours(study: Study, unbraid_cli, tmp_path: Path) -> None:
    frame = study.results()
    three, four = (frame[frame["hyper.latents"] == latents].iloc[0] for latents in (3, 4))
    assert three["published.mig.score"] == 0.25
    assert json.loads(three["published"]) == {"mig.score": {"source": "Doe 2020, table 1", "reason": "other images"}}
    assert four[["published", "published.mig.score"]].isna().all()
    folder = str(study.require_folder())
    code, printed, _ = unbraid_cli("study", "published", folder, "--json", "-")
    (row,) = json.loads(printed)
    assert (code, row["measured"], row["difference"]) == (0, three["mig.score"], three["mig.score"] - 0.25)
    printed = unbraid_cli("study", "published", folder)[1]
    assert "Doe 2020, table 1; may differ: other images" in printed
    command = ("export", folder, "--records", "--organisation", "Lab", "--out", str(tmp_path / "new"))
    assert unbraid_cli(*command) == (0, f"wrote 2 records below {tmp_path / 'new' / 'data'}\n", "")


@pytest.mark.parametrize(
    ("old", "new", "said"),
    [
        (
            "- family: pca",
            "- family: vae",
            r"\[0\].family: the study has no vae; there are pca; add it, or remove",
        ),
        ("- family: pca", "- family: pcaa", r"published\[0\].family: the study has no pcaa; did you mean 'pca'\?"),
        ("{latents: 3}", "{latent: 3}", r"published\[0\].setting.latent: unknown; did you mean 'latents'\?"),
        ("{latents: 3}", "{latents: 3.5}", r"published\[0\].setting.latents must be a whole number; got 3.5"),
        ("{latents: 3}", "{latents: 5}", r"published\[0\].setting: no run of pca has latents=5; add it, or remove"),
        (
            "column: mig.score",
            "column: sap.score",
            r"published\[0\].column: the study does not compute 'sap'; .* add it, or remove",
        ),
        ("column: mig.score", "column: mi.score", r"does not compute 'mi'; did you mean 'mig'\?"),
        (
            "column: mig.score",
            "column: mig.scores",
            r"published\[0\].column: mig has no 'scores'; did you mean 'score'\?",
        ),
        ("column: mig.score", "column: udr.scor", r"published\[0\].column: udr has no 'scor'; did you mean 'score'\?"),
        ("reason: other images", "why: x", r"published\[0\].reason: is missing"),
        ("value: 0.25", "value: .nan", r"published\[0\].value: input should be a finite number"),
    ],
)
def test_what_cannot_be_compared_is_refused(study: Study, old: str, new: str, said: str) -> None:
    with pytest.raises(ValueError, match=said):
        check_published(parse(study.text.replace(old, new), "study.yaml"), planned_runs(study.part()))


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("column: mig.score", "column: mig.ceiling"),
        ("column: mig.score", "column: mig.held_out"),
        ("column: mig.score", "column: udr.informative"),
        ("column: mig.score", "column: factor_leakage.norm_mean"),
        ("column: mig.score", "column: tests.studies.examples:spread.score"),
        ("column: mig.score", "column: compositional.mlp.both"),
        ("{latents: 3}", "{}"),
        ("{latents: 3}", "{latents: 3.0}"),
    ],
)
def test_what_can_be_compared_is_not(study: Study, old: str, new: str) -> None:
    check_published(parse(study.text.replace(old, new), "study.yaml"), planned_runs(study.part()))


def test_a_default_that_configs_leave_out_is_that_of_their_runs(study: Study) -> None:
    """Hyperparameters that came later are left out of configs at their defaults, so that ids stay."""
    text = study.text.replace("pca", "vae").replace("{latents: 3}", "{schedule: constant}")
    config = parse(text, "study.yaml")
    planned = expand(config, AROUND)
    assert all("schedule" not in run.config["hyperparameters"] for run in planned)
    check_published(config, planned)
    with pytest.raises(ValueError, match="no run of vae has schedule=linear"):
        check_published(parse(text.replace("constant", "linear"), "study.yaml"), planned)


def test_a_setting_that_is_text_may_look_like_a_number(study: Study) -> None:
    text = study.text.replace("pca, latents: [3, 4]", "parted_vae, classes: [3, 3+4]").replace("pca", "parted_vae")
    text = text.replace("{latents: 3}", "{classes: 3}")
    planned = expand(parse(text, "study.yaml"), AROUND)
    assert [run.config["hyperparameters"]["classes"] for run in planned] == ["3", "3+4"]
    check_published(parse(text, "study.yaml"), planned)
    with pytest.raises(ValueError, match="no run of parted_vae has classes=4"):
        check_published(parse(text.replace("{classes: 3}", "{classes: 4}"), "study.yaml"), planned)
