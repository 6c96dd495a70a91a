"""Parts of a study as jobs of an array."""

from pathlib import Path
from threading import Thread
from typing import Any

import pandas as pd
import pytest

from tests.processes import started
from tests.studies.study_examples import same_but_for_times
from unbraid.studies.shards import Shard, claimed, parse_shard
from unbraid.studies.study import Study
from unbraid.studies.study_record import StudyProgress

YAML = """
name: small
dataset: {name: square, positions: 8, shrink: 4}
families: [{name: pca, latents: [2, 3, 4]}, {name: pca, latents: 5, seeds: 1}]
seeds: 2
steps: 1
device: cpu
metrics: [mig]
udr: {similarity: spearman}
"""
HOLDS = """
import sys
from pathlib import Path
from unbraid.studies.shards import claimed, parse_shard
with claimed(Path(sys.argv[1]), parse_shard(sys.argv[2])):
    print("held", flush=True)
    sys.stdin.read()
"""


def test_shards_are_disjoint_complete_and_of_nearly_one_length() -> None:
    for count in (0, 1, 7, 30):
        for of in (1, 2, 7, 40):
            parts = [Shard(number, of).part(range(count)) for number in range(1, of + 1)]
            assert sorted(item for part in parts for item in part) == list(range(count))
            assert {len(part) for part in parts} <= {count // of, count // of + 1}


@pytest.mark.lengthy
def test_the_shards_of_a_study_together_are_the_study(tmp_path: Path) -> None:
    (tmp_path / "study.yaml").write_text(YAML)
    whole = Study.load(tmp_path / "study.yaml", out=tmp_path / "whole")
    whole.run(processes=0)
    study = Study.load(tmp_path / "study.yaml", out=tmp_path / "parts")
    ids = [run.id for run in whole.runs()]
    for number, done in ((2, ids[1::2]), (2, ids[1::2]), (1, ids)):  # the second is run twice: its part stays the same
        times = {path: path.stat().st_mtime_ns for path in (tmp_path / "parts").glob("runs/*/status.json")}
        runs = study.run(processes=0, shard=f"{number}/2")
        assert {run.id for run in runs if run.state == "finished"} == {*done}
        assert all(path.stat().st_mtime_ns == time for path, time in times.items())
        assert list(study.results()["run"]) == ids
        assert ("udr.score" in study.results()) is (done == ids)  # by who comes last
    assert same_but_for_times(study.results(), whole.results())
    assert study.run(processes=0, shard="9/9")[0].state == "finished"  # a shard without runs


def test_a_shard_is_run_once_at_a_time_beside_its_siblings_alone(tmp_path: Path) -> None:
    with started("-c", HOLDS, str(tmp_path), "2/3", stdin=-1, stdout=-1) as process:
        assert process.stdout
        assert process.stdout.readline() == "held\n"
        with claimed(tmp_path, parse_shard("1/3")):
            pass
        with pytest.raises(ValueError, match="another process is at work on shard 2/3"):
            claimed(tmp_path, parse_shard("2/3")).__enter__()
        for other in ("2/4", "1/2", "1/1", "5/1048576"):
            with pytest.raises(ValueError, match="divided otherwise than by"):
                claimed(tmp_path, parse_shard(other)).__enter__()
        with pytest.raises(ValueError, match="another process is at work on this study"):
            claimed(tmp_path).__enter__()
        process.communicate()
    with claimed(tmp_path):
        pass


@pytest.mark.lengthy
def test_of_shards_that_end_together_one_does_what_depends_on_all_runs(tmp_path: Path) -> None:
    (tmp_path / "study.yaml").write_text(YAML.replace("udr: {similarity: spearman}", "baselines: true"))
    study = Study.load(tmp_path / "study.yaml", out=tmp_path / "study")
    study.run(processes=0, shard="2/2")
    told: dict[str, list[Any]] = {"1/2": [], "2/2": []}

    def run(shard: str) -> None:
        def progress(sent: StudyProgress) -> None:
            told[shard] += [sent.after[0]] if sent.after else []
            if shard == "1/2" and told[shard] and not other.ident:
                other.start()
                other.join(timeout=0.3)  # time to do the same, if it did not wait

        study.run(processes=0, shard=shard, progress=progress)

    other = Thread(target=run, args=["2/2"])
    run("1/2")
    other.join()
    assert "scoring random projection" in told["1/2"]
    assert told["2/2"] == []
    assert study.results()["above_baselines"].notna().to_numpy().all()


def test_the_table_of_several_datasets_has_what_other_shards_ended_meanwhile(tmp_path: Path) -> None:
    square = "name: square, positions: 8, shrink: 4"
    two = f"datasets: [{{{square}, label: one}}, {{{square}, label: two}}]"
    text = YAML.replace(f"dataset: {{{square}}}", two)
    (tmp_path / "study.yaml").write_text(text)
    study, begun = Study.load(tmp_path / "study.yaml", out=tmp_path / "wide"), []

    def beside(sent: StudyProgress) -> None:
        if sent.label == "two" and sent.n_done and not begun:
            begun.append(sent)
            study.run(processes=0, shard="2/2")

    study.run(processes=0, shard="1/2", progress=beside)
    states = pd.read_parquet(tmp_path / "wide" / "results.parquet")["state"].tolist()
    assert states == ["finished"] * 14
