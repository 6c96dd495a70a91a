"""What is trained in so many minutes."""

from pathlib import Path

import pytest

from tests.studies.study_examples import parse
from unbraid.fitting import plan as planning
from unbraid.fitting.plan import Cost, FinalRound, Plan, Round, SearchRound, Setting, longer, make_plan, settings_of

FAMILIES = ("beta_tcvae", "beta_vae")


def costing(per_step: dict[int, float], dense: float, once: float = 1.0):
    """Steps that take so many seconds by the size of the images, or with dense layers, two models at a time."""

    def measured(_images: Path, _whole: int, planned: Round, families: list[str], **_: object) -> Cost:
        seconds = dense if planned.network == "dense" else per_step[planned.size]
        return Cost(dict.fromkeys(families, once), dict.fromkeys(families, seconds), 2, dict.fromkeys(families, 1))

    return measured


@pytest.fixture
def plan(monkeypatch: pytest.MonkeyPatch):
    def made(minutes: float, per_step: dict[int, float], dense: float = 0.005, *, fixed: bool = False) -> Plan:
        monkeypatch.setattr(planning, "measured", costing(per_step, dense))
        return make_plan(
            Path("images.npy"), 64, minutes, FAMILIES, fixed_size=fixed, seed=3, latents=7, options={}
        )  # fmt: skip

    return made


def test_the_most_promising_settings_of_every_family_come_first():
    found = [(each.family, each.strength) for each in settings_of(FAMILIES)]
    tcvae, vae = [("beta_tcvae", each) for each in (2, 0.5, 1)], [("beta_vae", each) for each in (2, 1, 0.5)]
    assert found == [each for pair in zip(tcvae, vae, strict=True) for each in pair]
    with pytest.raises(ValueError, match=r"families must be of beta_tcvae, .*; got 'gan'"):
        settings_of(["gan"])
    assert settings_of(["beta_vae", "beta_vae"]) == settings_of(["beta_vae"])
    with pytest.raises(ValueError, match=r"families must be one or more of .*; got none"):
        settings_of([])


def test_steps_fill_the_shares_of_the_minutes(plan):
    """30 minutes: 630 s for 6 settings of 3 seeds, two at a time, 1 s each and 15 ms a step; 900 s for 10 models."""
    found = plan(30, {16: 0.015, 32: 0.016, 64: 0.017})
    assert (found.search.network, found.final.network) == ("conv", "conv")
    assert found.search.steps == pytest.approx((630 - 9) / (9 * 0.015), abs=1)
    assert (found.final.size, found.final.steps) == (64, pytest.approx((900 - 5) / (5 * 0.017), abs=1))
    assert (found.final.settings, found.final.multiples, found.final.seeds) == (1, [1.0, 4.0], 5)
    assert (found.seed, found.latents, found.n_models) == (3, 7, 28)


def test_less_time_takes_smaller_images_and_then_fewer_settings_and_then_dense_layers(plan):
    assert plan(30, {16: 0.005, 32: 0.017, 64: 0.02}).final.size == 32
    found = plan(30, {16: 0.02, 32: 0.1, 64: 0.4})
    assert (found.final.size, found.final.multiples, found.final.settings) == (16, [1.0], 2)
    assert (found.search.network, len(found.search.settings)) == ("conv", 4), (
        "630 s for 3 seeds, two at a time, of 81 s: seven turns, and 15 models would take eight"
    )
    assert found.search.steps >= 4000
    assert plan(30, {16: 0.0225}).search.network == "dense", "900 s for 10 models, two at a time, of 8 000 steps"
    assert plan(30, {16: 0.0223, 32: 0.1, 64: 0.4}).search.network == "conv"
    small = plan(2, {16: 0.01})
    assert (small.search.network, small.final.network, small.final.size) == ("dense", "dense", 16)
    assert len(small.search.settings) == 4, "42 s for 3 seeds, two at a time, of 6 s each"
    assert small.search.steps >= 1000


def test_a_size_that_was_asked_for_is_kept_whatever_the_network_of_the_search(plan):
    found = plan(60, {16: 0.2, 64: 0.03}, fixed=True)
    assert (found.search.network, found.final.network, found.final.size) == ("dense", "conv", 64)


def test_larger_images_try_the_strength_as_it_is_and_larger():
    best = [Setting(family="beta_vae", strength=2), Setting(family="vae", strength=1)]
    final = FinalRound(size=64, network="conv", steps=1, seeds=5, settings=2, multiples=[1, 4])
    assert [(each.family, each.strength) for each in final.chosen(best)] == [
        ("beta_vae", 2),
        ("beta_vae", 8),
        ("vae", 1),
    ]


def test_a_plan_is_written_and_read(tmp_path: Path):
    plan = Plan(
        minutes=3, size=16, final=FinalRound(size=16, network="dense", steps=20, seeds=2, settings=1, multiples=[1]),
        search=SearchRound(size=16, network="dense", steps=10, seeds=2, settings=settings_of(FAMILIES)),
    )  # fmt: skip
    planning.write_plan(plan, tmp_path / "plan.yaml")
    assert planning.read_plan(tmp_path / "plan.yaml") == plan
    (tmp_path / "plan.yaml").write_text((tmp_path / "plan.yaml").read_text() + "minuets: 3\n")
    with pytest.raises(ValueError, match=r"plan\.yaml: minuets: unknown"):
        planning.read_plan(tmp_path / "plan.yaml")


def test_more_minutes_are_more_seeds_of_the_same_models():
    plan = Plan(
        minutes=30, size=16, final=FinalRound(size=16, network="dense", steps=20, seeds=5, settings=1, multiples=[1]),
        search=SearchRound(size=16, network="dense", steps=10, seeds=2, settings=settings_of(FAMILIES)),
    )  # fmt: skip
    found = longer(plan, 60)
    assert found.final.seeds == 15, "30 more minutes, where 15 trained 5 seeds"
    assert found.model_copy(update={"minutes": 30, "final": plan.final}) == plan


def test_settings_of_the_last_round_are_counted_as_they_are_trained():
    """A family without a strength has no multiples of it, and one setting there is no second best."""

    def planned(settings: list[Setting], number: int) -> Plan:
        return Plan(
            minutes=30, size=16, search=SearchRound(size=16, network="dense", steps=10, seeds=2, settings=settings),
            final=FinalRound(size=16, network="dense", steps=20, seeds=5, settings=number, multiples=[1, 4]),
        )  # fmt: skip

    plain = settings_of(["vae"])
    assert planned(plain, 2).n_models == 2 + 5
    assert planned([*plain, *settings_of(["beta_vae"])], 1).n_models == 2 * 4 + 5 * 2, "at most: whatever is best"
    weak, strong = (Setting(family="beta_vae", strength=each) for each in (0.5, 2))
    found = planned([weak, strong], 2)
    assert [each.strength for each in found.final.chosen([weak, strong])] == [0.5, 2, 8], "2 is 4 times 0.5"
    assert found.n_models == 2 * 2 + 5 * 3


def test_a_family_without_strengths_has_all_the_time_of_the_last_round(monkeypatch):
    """900 s, of which each of five models takes 1 s and 15 ms a step."""
    cost = Cost({"vae": 1.0}, {"vae": 0.015}, 1, {"vae": 1})
    monkeypatch.setattr(planning, "measured", lambda *_, **__: cost)
    found = planning.make_plan(
        Path("images.npy"), 64, 30, ["vae"], fixed_size=False, seed=0, latents=7, options={}
    )  # fmt: skip
    assert (found.final.size, found.n_models) == (64, 8)
    assert found.final.steps == pytest.approx((900 - 5) / (5 * 0.015), abs=1)


def test_a_round_is_an_ordinary_study():
    found = parse(
        planning.study_of(
            Path("images.npy"), 64, Round(size=16, network="conv", steps=300, seeds=2), [4, 5],
            settings_of(["dip_vae_ii"]), latents=6, options={"device": "cpu"}, name="search",
        ),
        "here",
    )  # fmt: skip
    assert (found.dataset.name, found.dataset.options) == ("images.npy", {"shrink": 4})
    assert [each.hyperparameters["lambda_od"] for each in found.families] == [2, 5]
    assert [each.hyperparameters["lambda_d"] for each in found.families] == [2, 5]
    assert (found.seeds, found.steps, found.device) == ([4, 5], 300, "cpu")
    assert (found.batch_size, [each.hyperparameters["network"] for each in found.families]) == (16, ["conv", "conv"])


def test_models_that_no_core_is_left_for_wait_for_the_next_turn() -> None:
    """Of a second and 100 steps of .01: each model takes two seconds of a core."""
    settings = settings_of(["beta_vae"])[:2]
    for cores, turns in ((1, 10), (2, 5), (4, 3), (9, 2), (10, 1), (64, 1)):
        cost = Cost({"beta_vae": 1.0}, {"beta_vae": 0.01}, cores, {"beta_vae": 1})
        assert cost.seconds(settings, 5, 100) == pytest.approx(2.0 * turns)
        assert cost.steps(settings, 5, 2.0 * turns) == pytest.approx(100, abs=1)


def test_a_smaller_stack_takes_a_gpu_no_less_than_the_one_that_was_measured() -> None:
    """Whose nine models took .01 s a step each."""
    names = ["beta_vae", "beta_tcvae"]
    cost = Cost(dict.fromkeys(names, 1.0), dict.fromkeys(names, 0.01), 1, dict.fromkeys(names, 9))
    of_both = [Setting(family=name, strength=1.0) for name in names]
    assert cost.seconds(of_both[:1], 9, 100) == pytest.approx(18.0)
    assert cost.seconds(of_both[:1], 3, 100) == pytest.approx(18.0)
    assert cost.seconds(of_both, 5, 100) == pytest.approx(36.0)
    assert cost.seconds(of_both[:1], 18, 100) == pytest.approx(36.0)


def test_no_minutes_are_more_seeds_than_a_round_may_have():
    plan = Plan(
        minutes=1, size=16, seed=planning.LARGEST_SEED,
        final=FinalRound(size=16, network="dense", steps=20, seeds=5, settings=1, multiples=[1]),
        search=SearchRound(size=16, network="dense", steps=10, seeds=10_000, settings=settings_of(FAMILIES)),
    )  # fmt: skip
    found = longer(plan, 1e300)
    assert found.final.seeds == 10_000
    assert found.seed + found.search.seeds + found.final.seeds - 1 < 2**63
