"""What other laboratories are given: records of a shared schema."""

import json
import shutil
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from tests.cli.test_cli import digest
from tests.conftest import Cli
from tests.sharing.test_every_eval_ever import check
from unbraid import load_run
from unbraid.sharing.every_eval_ever import record_path
from unbraid.storage.json_records import read_object
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


def test_records_are_written_by_the_command(study: Study, unbraid_cli: Cli, tmp_path: Path) -> None:
    command = ("export", study.require_folder(), "--records", "--organisation", "Lab", "--out", tmp_path / "new")
    assert unbraid_cli(*command) == (0, f"wrote 2 records below {tmp_path / 'new' / 'data'}\n", "")
