"""Names of code: what the user gave is imported, what a file holds is not."""

import json
import pickle
import sys
from pathlib import Path

import pytest

import unbraid
from tests.studies.study_examples import spread
from tests.training.training_examples import blocks
from unbraid.families.networks import dense_pair, network_pair
from unbraid.files.trust import Trusted, UntrustedCode, imported, is_called, is_code, trusted_in, trusting
from unbraid.studies.study import Study

SPREAD = "tests.studies.study_examples:spread"
SMALL = {"steps": 2, "batch_size": 8, "latents": 3, "precision": "float32", "processes": 0}


@pytest.mark.parametrize("name", ["a:b", "a.b_1.c:d", "größe:maß"])
def test_a_name_of_code(name: str) -> None:
    assert is_code(name)


@pytest.mark.parametrize(
    "name", ["", "a", ":", "a:", ":b", "a:b:c", ".a:b", "a..b:c", "a b:c", "a:b.c", "a:b()", "s3://a"]
)
def test_what_is_no_name_of_code(name: str) -> None:
    assert not is_code(name)


def test_trust_goes_with_settings_and_to_other_processes_but_not_through_files() -> None:
    settings = trusting({"network": "a:b", "others": ["c:d", "conv", 3], "beta": 1.0})
    assert settings == {"network": "a:b", "others": ["c:d", "conv", 3], "beta": 1.0}
    assert trusted_in(settings) == ["a:b", "c:d"]
    assert trusted_in(pickle.loads(pickle.dumps(settings))) == ["a:b", "c:d"]
    assert trusted_in(json.loads(json.dumps(settings))) == []
    assert trusted_in(trusting(settings["others"][:1] + ["e:f"], ["e:f"])) == ["c:d", "e:f"]
    assert trusted_in({"network": "a:b"}) == []


def test_only_a_trusted_name_is_imported() -> None:
    sys.modules.pop("this", None)
    with pytest.raises(
        UntrustedCode, match="using the metric 'this:s' would execute that code: if you trust it, say so"
    ):
        imported("this:s", "metric", "say so")
    with pytest.raises(UntrustedCode):
        network_pair("this:s", (4, 4, 1), 2, 1)
    assert "this" not in sys.modules
    assert imported(Trusted(SPREAD), "metric", "") is spread
    for name in ("math:absent", "no_such_module:f"):
        with pytest.raises(ValueError, match=f"metric '{name}' cannot be imported: "):
            imported(Trusted(name), "metric", "")


def test_a_module_that_ends_the_program_is_one_that_cannot_be_imported(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "script_of_mine.py").write_text("import sys\nsys.exit('done')\n")
    monkeypatch.chdir(tmp_path)
    with pytest.raises(ValueError, match=r"cannot be imported: RuntimeError: sys.exit\('done'\) was called"):
        imported(Trusted("script_of_mine:f"), "metric", "")


def test_code_is_looked_for_where_the_user_named_it_and_the_path_stays_as_it_was(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "there").mkdir()
    (tmp_path / "there" / "named_there.py").write_text("import sys\nsys.path.insert(0, 'its own')\ndef f(): pass\n")
    monkeypatch.chdir(tmp_path / "there")
    name = pickle.loads(pickle.dumps(Trusted("named_there:f")))
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "path", [name.folder, *sys.path])
    before = list(sys.path)
    assert imported(name, "metric", "").__module__ == "named_there"
    assert sys.path == ["its own", *before]
    del sys.modules["named_there"]


def test_a_function_is_known_by_its_name_without_an_import() -> None:
    assert is_called(spread, SPREAD)
    assert is_called(dense_pair, "unbraid.families.networks:dense_pair")
    assert not is_called(dense_pair, "unbraid.families.networks:conv_pair")
    assert not is_called(spread, "antigravity:spread")
    assert "antigravity" not in sys.modules


def pair(*arguments):
    return dense_pair(*arguments)


NETWORK = f"{__name__}:pair"


def test_a_run_of_ones_own_network_is_opened_by_who_names_it(tmp_path: Path) -> None:
    run = unbraid.train("vae", blocks(), network=NETWORK, out=tmp_path, **SMALL)[0]
    images = blocks().images([0, 5])
    codes = run.encode(images)  # in the process that trained it, nobody asks again
    assert json.loads((run.path / "config.json").read_text())["hyperparameters"]["network"] == NETWORK
    refusal = (
        f"{run.path}/config.json names a network of its own, '{NETWORK}', and opening the run would execute it: "
        f"if you trust it, load_run(path, network='{NETWORK}')"
    )
    with pytest.raises(UntrustedCode) as caught:
        unbraid.load_run(run.path)
    assert str(caught.value) == refusal
    assert caught.value.names == (NETWORK,)
    for given in ({"network": NETWORK}, {"network": pair}, {"trust": ["a:b", NETWORK]}):
        assert (unbraid.load_run(run.path, **given).encode(images) == codes).all()
    for wrong in ("math:pair", dense_pair):
        with pytest.raises(ValueError, match=f"config.json names the network '{NETWORK}', which is not "):
            unbraid.load_run(run.path, network=wrong)
    with pytest.raises(UntrustedCode):
        unbraid.load_run(run.path, trust=["math:pair"])
    again = unbraid.train("vae", blocks(), network=NETWORK, out=tmp_path, **SMALL)[0]  # finished already
    assert (again.encode(images) == codes).all()


def test_a_network_given_for_a_run_that_has_one_of_ours_is_an_error(tmp_path: Path) -> None:
    run = unbraid.train("vae", blocks(), network="dense", out=tmp_path, **SMALL)[0]
    with pytest.raises(ValueError, match=r"config.json names the network 'dense', which is not 'math:pair'"):
        unbraid.load_run(run.path, network="math:pair")
    unbraid.load_run(run.path, trust=["math:pair"])


def test_a_study_is_run_from_the_users_yaml_and_not_from_the_copy_in_its_folder(tmp_path: Path) -> None:
    text = f"""
name: own
dataset: {{name: square, positions: 8, shrink: 4}}
families: [{{name: vae, network: "{NETWORK}", latents: 3}}]
steps: 2
batch_size: 8
precision: float32
device: cpu
metrics: [mig, "{SPREAD}"]
"""
    (tmp_path / "own.yaml").write_text(text)
    runs = Study.load(tmp_path / "own.yaml", out=tmp_path / "out").run(processes=0)
    assert [run.state for run in runs] == ["finished"]
    copy = Study.load(tmp_path / "out")
    assert [run.state for run in copy.runs()] == ["finished"]
    assert f"{SPREAD}.score" in copy.results().columns
    both = f"'{NETWORK}' and '{SPREAD}'"
    with pytest.raises(UntrustedCode, match=rf"out/study.yaml names code of its own, {both}, and this would "):
        copy.run(processes=0)
    with pytest.raises(UntrustedCode, match=rf"study.yaml names code of its own, '{SPREAD}'"):
        Study.load(tmp_path / "out", trust=[NETWORK]).run(processes=0)
    assert Study.load(tmp_path / "out", trust=[NETWORK, SPREAD]).run(processes=0)[0].state == "finished"
