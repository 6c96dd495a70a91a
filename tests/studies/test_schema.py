"""The YAML of a study: what it may hold, and that every fault is named by its path in one line."""

import inspect
import re
from typing import Any

import numpy as np
import pytest

from tests.studies.study_examples import SMALL, parse
from unbraid.families.family_table import FAMILIES
from unbraid.studies.executors import EXECUTORS
from unbraid.studies.expand import check_metrics, expand
from unbraid.studies.schema import OPTIONS, StudyConfig
from unbraid.studies.store import StudyEnvironment
from unbraid.studies.study_record import StudyPart

AROUND = StudyEnvironment(
    {"name": "square", "options": {}, "n_images": 64, "image_shape": [64, 64, 1], "content": "0" * 16}, "cpu", "float32"
)


def study(**changes: object) -> StudyConfig:
    return parse(str({"name": "n", "dataset": {"name": "square"}, "families": [{"name": "vae"}], **changes}), "s.yaml")


def test_the_contract_is_read_with_its_defaults():
    found = parse(SMALL, "s.yaml")
    assert found.dataset.options == {"positions": 8, "shrink": 4}
    assert found.families[0].hyperparameters == {"beta": [1, 4], "network": "dense", "latents": 3}
    assert (found.seeds, found.steps, found.metrics) == (2, 6, ["mig", "dci_lasso"])
    plain = parse("{name: n, dataset: sprites, families: [vae, {name: beta_vae, preset: udr}]}", "s.yaml")
    assert plain.dataset.name == "sprites"
    assert [family.name for family in plain.families] == ["vae", "beta_vae"]
    assert (plain.seeds, plain.steps, plain.batch_size, plain.precision, plain.device) == (1, 30000, 64, "auto", "auto")


def test_the_command_line_wins_over_the_executor_of_the_file():
    """A name given asks for that executor, with the file's options where they are its own."""
    plain, ray = study(), study(executor={"name": "ray", "address": "10.0.0.5:6379", "gpus_per_run": 0.25})
    assert plain.executor_with(None, {}) == ("local", {})
    assert plain.executor_with("ray", {"address": "auto"}) == ("ray", {"address": "auto"})
    assert ray.executor_with(None, {}) == ("ray", {"address": "10.0.0.5:6379", "gpus_per_run": 0.25})
    assert ray.executor_with("ray", {"address": "auto"}) == ("ray", {"address": "auto", "gpus_per_run": 0.25})
    assert ray.executor_with("local", {"processes": 1}) == ("local", {"processes": 1})
    assert study(executor="ray").executor_with(None, {}) == ("ray", {})
    assert study(executor={"name": "local", "processes": 0}).executor_with(None, {}) == ("local", {"processes": 0})


@pytest.mark.parametrize("name", EXECUTORS)
def test_the_file_may_say_of_an_executor_what_the_executor_takes(name: str):
    taken = set(inspect.signature(EXECUTORS[name]).parameters) - {"tasks", "datasets", "report"}
    assert set(OPTIONS[name]) == taken


def test_where_runs_are_trained_is_no_part_of_what_they_are():
    there = study(executor={"name": "ray", "gpus_per_run": 0.5})
    assert [run.id for run in expand(there, AROUND)] == [run.id for run in expand(study(), AROUND)]


def test_images_kept_out_are_part_of_what_runs_are():
    (plain,), (held,) = expand(study(), AROUND), expand(study(hold_out=0.1, hold_out_every=9, patience=2), AROUND)
    assert "hold_out" not in plain.config
    assert held.config["hold_out"] == {"images": 0.1, "every": 9, "patience": 2}
    assert held.id != plain.id
    for wrong in ({"hold_out": 1.5}, {"hold_out": True}, {"patience": 2}):
        with pytest.raises(ValueError, match="hold_out"):
            expand(study(**wrong), AROUND)


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({"famillies": []}, "famillies: unknown; did you mean 'families'?"),
        ({"families": [{"beta": 4}]}, "families[0].name: is missing"),
        ({"families": [{"name": "vae", "seeds": [0, -1]}]}, "families[0].seeds[1]: input should be greater than"),
        ({"seeds": "five"}, "seeds: input should be a valid integer or a valid list; got 'five'"),
        ({"seeds": []}, "seeds: is empty; it needs at least one"),
        ({"precision": "float16"}, "precision: input should be 'auto', 'float32'"),
        ({"baselines": True}, "baselines: there is nothing to score them by; name metrics under `metrics`"),
        ({"compositional": {"factors": ["x", "y", "z"]}}, "compositional.factors: takes at most 2 entries; has 3"),
        ({"executor": {"name": "ray", "adress": "auto"}}, "executor.adress: unknown; did you mean 'address'?"),
        ({"executor": {"name": "local", "processes": -1}}, "executor.processes: input should be greater than or equal"),
        (
            {"executor": {"name": "local", "address": "auto"}},
            "executor.address: no option of local, which has processes and pack; got 'auto'",
        ),
    ],
)
def test_a_fault_is_named_by_its_path_in_one_line(changes, said):
    with pytest.raises(ValueError, match="^s.yaml: " + re.escape(said)) as caught:
        study(**changes)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize(
    ("family", "said"),
    [
        ({"name": "beta_va"}, "families[1].name: unknown family 'beta_va'; did you mean 'beta_vae'?"),
        ({"name": "beta_vae", "betta": 4}, "families[1].betta: unknown; did you mean 'beta'?"),
        ({"name": "beta_vae", "seed": 4}, "families[1].seed: unknown; did you mean 'seeds'?"),
        ({"name": "beta_vae", "beta": [1, "x"]}, "families[1].beta must be a number; got 'x'"),
    ],
)
def test_a_setting_that_does_not_exist_is_named_by_its_path(family, said):
    with pytest.raises(ValueError, match="^" + re.escape(said)):
        expand(study(families=[{"name": "vae"}, family]), AROUND)


def test_runs_are_the_products_of_the_lists_and_the_seeds_and_equal_ones_come_once():
    families = [
        {"name": "beta_vae", "beta": [1, 4], "latents": [3, 5]},
        {"name": "beta_vae", "beta": 4.0, "latents": 5, "seeds": [1, 7]},
        {"name": "vae", "steps": 10, "batch_size": 16},
        {"name": "cci_vae", "preset": "udr", "seeds": 1},
    ]
    found = expand(study(families=families, seeds=2, steps=20), AROUND)
    listed = [(run.family, run.setting, run.seed) for run in found]
    assert listed[:9] == [
        *(("beta_vae", f"latents={n}, beta={b}, steps=20", seed) for b in (1, 4) for n in (3, 5) for seed in (0, 1)),
        ("beta_vae", "latents=5, beta=4, steps=20", 7),
    ]
    assert listed[9:11] == [("vae", "steps=10, batch_size=16", 0), ("vae", "steps=10, batch_size=16", 1)]
    assert len(listed) == 11 + len(FAMILIES["cci_vae"].presets["udr"])
    assert found[9].config["steps"] == 10
    assert [found[number].config["batch_size"] for number in (0, 9)] == [64, 16]
    assert found[0].config["steps"] == 20


def settings(**section: Any) -> list[tuple[Any, ...]]:
    runs = expand(study(families=[{"name": "beta_vae", **section}]), AROUND)
    return [tuple(run.config["hyperparameters"][name] for name in ("beta", "latents", "learning_rate")) for run in runs]


def test_zero_has_no_sign() -> None:
    """-0.0 equals 0, and two runs of one setting and seed would be copies of each other for a ranking."""
    assert len(settings(beta=[0, -0.0])) == len(settings(beta=0))


def test_values_are_taken_together_left_out_or_drawn() -> None:
    grid = settings(beta=[1, 2], zip={"latents": [3, 5], "learning_rate": [1e-3, 1e-4]})
    assert sorted(grid) == [(beta, *pair) for beta in (1, 2) for pair in ((3, 1e-3), (5, 1e-4))]
    left = settings(beta=[1, 2], latents=[3, 5], exclude=[{"beta": 2.0, "latents": 5}])
    assert sorted(left) == [(1, 3, 1e-4), (1, 5, 1e-4), (2, 3, 1e-4)]
    ranges = {"beta": {"log_uniform": [1, 1000]}, "latents": {"integers": [2, 4]}}
    few, many = settings(random={"n": 3, **ranges}), settings(random={"n": 300, **ranges})
    assert set(few) <= set(many)  # more of them leave those that are there
    betas = np.array([beta for beta, *_ in many])
    assert {latents for _, latents, _ in many} == {2, 3, 4}
    assert betas.min() >= 1
    assert betas.max() <= 1000
    assert abs(np.log10(betas).mean() - 1.5) < 0.2
    assert all(float(f"{beta:.4g}") == beta for beta in betas)
    wider = settings(random={"n": 3, **ranges, "learning_rate": {"uniform": [1e-5, 1e-4]}})
    assert [each[:2] for each in wider] == [each[:2] for each in few]
    assert settings(random={"n": 3, "seed": 1, **ranges}) != few
    assert {beta for beta, *_ in settings(random={"n": 50, "beta": [2, 3]})} == {2, 3}


@pytest.mark.parametrize(
    ("section", "said"),
    [
        ({"zip": {"latents": [3, 5], "beta": [1]}}, r"families\[0\].zip: lists that are .* latents has 2, beta has 1"),
        ({"zip": {"beta": [3]}, "beta": 4}, r"families\[0\]: beta is given twice"),
        ({"random": {"beta": [1, 2]}}, r"families\[0\].random.n: is missing"),
        ({"random": {"n": 2}}, r"families\[0\].random: names no hyperparameter"),
        ({"random": {"n": 2, "betta": [1]}}, r"families\[0\].random.betta: unknown; did you mean 'beta'"),
        ({"random": {"n": 2, "beta": {"log_uniform": [0, 1]}}}, r"families\[0\].random.beta: write a list"),
        ({"random": {"n": 2, "beta": {"uniform": [2, 1]}}}, r"families\[0\].random.beta: write a list"),
        ({"random": {"n": 2, "latents": {"integers": [1.5, 3]}}}, r"families\[0\].random.latents: write a list"),
        ({"random": {"n": 2, "beta": 3}}, r"families\[0\].random.beta: write a list"),
        ({"random": {"n": 2, "beta": {"uniform": [-5, -1]}}}, r"families\[0\].beta must lie between 0 and"),
        ({"exclude": [{"beta": 9}]}, r"families\[0\].exclude\[0\]: no run has beta=9"),
        ({"exclude": [{"beta": 4}]}, r"families\[0\].exclude: no run is left"),
    ],
)
def test_a_search_that_cannot_be_names_its_key(section: dict[str, Any], said: str) -> None:
    with pytest.raises(ValueError, match=said):
        settings(**section)


def test_networks_of_ones_own_are_found_wherever_they_stand() -> None:
    own = "tests.studies.study_examples:{}"
    for section in (
        {"zip": {"network": [own.format("refusing"), "dense"]}},
        {"random": {"n": 4, "network": [own.format("refusing")]}},
    ):
        config = study(families=[{"name": "vae", **section}])
        assert config.own_code == [own.format("refusing")]
        with pytest.raises(ValueError, match="names code of its own"):
            StudyPart(config.trusting([]), None, "").check_trust()
        StudyPart(config.trusting(), None, "").check_trust()


def test_the_id_and_the_setting_of_a_run_do_not_depend_on_what_else_the_study_holds():
    alone = expand(study(families=[{"name": "beta_vae", "beta": 4}]), AROUND)
    among = expand(study(families=[{"name": "vae"}, {"name": "beta_vae", "beta": [1, 4]}], seeds=3, name="x"), AROUND)
    assert alone[0].id in {run.id for run in among}
    assert (alone[0].setting, among[6].setting, among[0].setting) == ("beta=4", "beta=4", "")


def test_more_runs_than_anyone_could_want_are_refused():
    with pytest.raises(ValueError, match=r"families\[0\]: 6000000000 runs; a study holds 100000 at most"):
        expand(study(families=[{"name": "beta_vae", "beta": [1, 2], "latents": [3, 4, 5]}], seeds=10**9), AROUND)


@pytest.mark.parametrize(
    ("metrics", "said"),
    [
        (["mig", "dci_laso"], "unknown metric 'dci_laso'; did you mean 'dci_lasso'?"),
        (["mig", "d_lsbd"], "metrics[1]: d_lsbd needs at least one cyclic factor; the factors of the dataset are a"),
        (["independence_score"], "metrics[0]: independence_score needs at least two cyclic or ordinal factors"),
        (["zero_shot"], "metrics[0]: zero_shot needs a gap; give one as `zero_shot: {held_out: ...}`"),
        (["udr"], "metrics[0]: udr compares models with each other; say how under the key `udr`"),
        (["tests.studies.study_examples:absent"], "cannot be imported"),
    ],
)
def test_a_metric_that_the_factors_do_not_allow_is_refused(metrics, said):
    with pytest.raises(ValueError, match=re.escape(said)):
        check_metrics(study(metrics=metrics).trusting(), ["categorical", "ordinal"], ["a", "b"])
