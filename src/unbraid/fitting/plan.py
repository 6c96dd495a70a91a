"""The plan of `unbraid fit`: a search among small models, then the best settings at full size, within a time limit.

The plan is a YAML file that is written before anything is trained. The same plan with the same images gives the same
models on the same machine; the same number of minutes may not, since the speed is measured again.
"""

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from math import ceil
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Annotated, Any, Literal, TypeAlias

import numpy as np
from pydantic import Field, field_validator, model_validator
from pydantic_core import PydanticCustomError

from unbraid.base.counted import counted
from unbraid.families.family import NO_AUGMENTATION, check_value
from unbraid.families.family_table import find_family
from unbraid.families.networks import SMALLEST
from unbraid.families.resnet import LARGEST
from unbraid.files.json_records import MOST
from unbraid.files.whole_files import write_text
from unbraid.files.yaml_files import read_text, written
from unbraid.fitting.fit_images import SIZES
from unbraid.studies.estimate import estimate
from unbraid.studies.schema import Count, NotNegative, Section, checked, mapping
from unbraid.studies.study import Study

FILE = "plan.yaml"
SEARCH_SIZE = 16
MARGIN = 1.25  # added to the minutes in the error for too few, since the next measurement may be slower
SEARCH_SHARE, FINAL_SHARE = 0.35, 0.5  # of the minutes; the rest is for choosing, encoding and the page
SEARCH_SEEDS, FINAL_SEEDS = 3, 5
# The least and the largest number of steps, by network, in each round.
SEARCH_STEPS = {"dense": (1000, 6000), "conv": (4000, 12_000)}
FINAL_STEPS = {"dense": (1500, 20_000), "conv": (8000, 40_000)}
FEWEST_LARGER = 10_000  # steps at a larger size than the search; with 7 500, models of the smaller size were better
LEAST_SETTINGS = 3
# Number of settings in the last round, and multiples of their strengths: at the size of the search, and at a larger.
SAME_SIZE, LARGER = (2, [1.0]), (1, [1.0, 4.0])
HELD_OUT, EVALUATIONS, PATIENCE = 0.05, 20, 4  # hold-out share, and early stopping
# Compared by evidence/benchmarks/small_networks.py, with these values only.
LEARNING_RATES, BATCH_SIZES = {"dense": 0.002, "conv": 0.001}, {"dense": 64, "conv": 16}
# The search space of each family: hyperparameters that a strength sets, and strengths, the most promising first.
STRENGTHS: Mapping[str, tuple[tuple[str, ...], tuple[float, ...]]] = {
    "beta_tcvae": (("beta",), (2, 0.5, 1)),
    "beta_vae": (("beta",), (2, 1, 0.5)),
    "dip_vae_ii": (("lambda_od", "lambda_d"), (2, 5)),
    "factor_vae": (("gamma",), (4, 20)),
    "vae": ((), (1,)),
}
FAMILIES = ("beta_tcvae", "beta_vae", "dip_vae_ii")  # searched by default
MOST_SEEDS = 10_000  # of a round
LARGEST_SEED = MOST - 2 * MOST_SEEDS  # of the first model: those of the others count up from it

Measuring: TypeAlias = Callable[[str, int, int], None]
Network: TypeAlias = Literal["conv", "dense"]


class Setting(Section):
    """A family, and the strength of its regularisation."""

    family: str
    strength: NotNegative

    @field_validator("family")
    @classmethod
    def _known(cls, name: str) -> str:
        if name not in STRENGTHS:
            raise PydanticCustomError("family", "must be one of {names}", {"names": ", ".join(STRENGTHS)})
        return name

    @property
    def hyperparameters(self) -> dict[str, float]:
        return dict.fromkeys(STRENGTHS[self.family][0], self.strength)


class Round(Section):
    """Models that are trained together."""

    size: Count
    network: Network
    steps: Count
    seeds: Annotated[int, Field(ge=1, le=MOST_SEEDS, strict=True)]

    @model_validator(mode="after")
    def _images_fit(self) -> "Round":
        if self.network == "conv" and not SMALLEST <= self.size <= LARGEST:
            text = "size must be {least} to {most} for the network conv; got {size}"
            raise PydanticCustomError("size", text, {"least": SMALLEST, "most": LARGEST, "size": self.size})
        return self


class SearchRound(Round):
    settings: list[Setting] = Field(min_length=1)


class FinalRound(Round):
    settings: Count  # of the search, the best ones
    # Factors of the strengths. For larger images the best strength is often, but not always, larger: at a larger size
    # than that of the search both are tried.
    multiples: list[Annotated[float, Field(gt=0, le=1e6)]] = Field(min_length=1)

    def chosen(self, best_first: Sequence[Setting]) -> list[Setting]:
        """The distinct settings to train, from those of the search."""
        every = [
            Setting(family=setting.family, strength=setting.strength * multiple)
            for setting in best_first[: self.settings]
            for multiple in (self.multiples if STRENGTHS[setting.family][0] else [1.0])
        ]
        return [setting for place, setting in enumerate(every) if setting not in every[:place]]


class Plan(Section):
    """All that determines the models that are trained; the keys of the YAML file."""

    minutes: float = Field(gt=0, allow_inf_nan=False)
    seed: Annotated[int, Field(ge=0, le=LARGEST_SEED, strict=True)] = 0
    latents: Count = 10
    augment: str = NO_AUGMENTATION  # by name
    size: Count  # of the images in the cache
    search: SearchRound
    final: FinalRound

    @model_validator(mode="after")
    def _sizes_divide(self) -> "Plan":
        for name, size in (("search", self.search.size), ("final", self.final.size)):
            if self.size % size:
                text = "{name}.size must divide size, {whole}, that of the images; got {size}"
                raise PydanticCustomError("size", text, {"name": name, "whole": self.size, "size": size})
        return self

    @model_validator(mode="after")
    def _strengths_can_be_trained(self) -> "Plan":
        every = self.final.model_copy(update={"settings": len(self.search.settings)})
        for setting in every.chosen(self.search.settings):
            rows = find_family(setting.family).hyperparameters
            try:
                for name, value in setting.hyperparameters.items():
                    check_value(name, rows[name], value)
            except ValueError as error:
                text, facts = "final.multiples: {family}: {reason}", {"family": setting.family, "reason": str(error)}
                raise PydanticCustomError("multiples", text, facts) from None
        return self

    @property
    def most_settings(self) -> int:
        """Largest possible number of settings of the last round; families without strengths have no multiples."""
        with_strengths_first = sorted(self.search.settings, key=lambda setting: not STRENGTHS[setting.family][0])
        return len(self.final.chosen(with_strengths_first))

    @property
    def n_models(self) -> int:
        return self.search.seeds * len(self.search.settings) + self.final.seeds * self.most_settings


@dataclass(frozen=True)
class Cost:
    """Seconds that a model of one size takes on this machine, by family."""

    once: Mapping[str, float]  # besides its steps: starting, encoding
    per_step: Mapping[str, float]
    at_once: int  # models, or stacks of them on GPUs
    together: Mapping[str, int]  # models of the stack that was measured; 1 on a CPU

    def seconds(self, settings: Sequence[Setting], seeds: int, steps: int) -> float:
        """Seconds of all models, one after the other per core; on a GPU, smaller stacks take as long as full ones."""
        models = Counter(
            {name: count * seeds for name, count in Counter(setting.family for setting in settings).items()}
        )
        total = sum(
            max(count, self.together[name]) * (self.once[name] + steps * self.per_step[name])
            for name, count in models.items()
        )
        turns = ceil(models.total() / self.at_once)
        return total / models.total() * turns

    def steps(self, settings: Sequence[Setting], seeds: int, seconds: float) -> int:
        """The number of steps that fit into the seconds; negative if none do."""
        spare = seconds - self.seconds(settings, seeds, 0)
        return int(spare / (self.seconds(settings, seeds, 1) - self.seconds(settings, seeds, 0)))


Costing: TypeAlias = Callable[[int, Network], Cost]  # by size and network


def read_plan(path: Path) -> Plan:
    """The plan in a YAML file.

    Raises:
        FileNotFoundError: there is no such file.
        ValueError: an unknown key or a wrong value; the message names it.
    """
    return checked(Plan, mapping(read_text(path), str(path)), str(path))


def longer(plan: Plan, minutes: float) -> Plan:
    """The plan with more seeds in the last round, in proportion to the added minutes, at most `MOST_SEEDS`."""
    more = plan.final.seeds * (minutes - plan.minutes) / (FINAL_SHARE * plan.minutes)
    seeds = round(min(MOST_SEEDS, plan.final.seeds + more))
    return plan.model_copy(update={"minutes": minutes, "final": plan.final.model_copy(update={"seeds": seeds})})


def write_plan(plan: Plan, path: Path) -> None:
    content = plan.model_dump()
    if plan.augment == NO_AUGMENTATION:
        del content["augment"]
    write_text(path, written(content))


def settings_of(families: Sequence[str]) -> list[Setting]:
    """The settings of the search, the most promising of every family first.

    Raises:
        ValueError: no family, or one without strengths for `fit`.
    """
    families = list(dict.fromkeys(families))
    if not families:
        raise ValueError(f"families must be one or more of {', '.join(STRENGTHS)}; got none")
    for name in families:
        if name not in STRENGTHS:
            raise ValueError(f"families must be of {', '.join(STRENGTHS)}; got {name!r}")
    most = max(len(STRENGTHS[name][1]) for name in families)
    return [
        Setting(family=name, strength=STRENGTHS[name][1][place])
        for place in range(most)
        for name in families
        if place < len(STRENGTHS[name][1])
    ]


def make_plan(
    images: Path,
    size: int,
    minutes: float,
    families: Sequence[str],
    *,
    fixed_size: bool,
    seed: int,
    latents: int,
    augment: str = NO_AUGMENTATION,
    options: Mapping[str, Any],
    progress: Measuring | None = None,
) -> Plan:
    """A plan that takes about `minutes` on this machine, by steps that are measured now.

    Args:
        images: the .npy file.
        size: of the images in it, one of `SIZES`.
        minutes: for all of it.
        families: keys of `STRENGTHS`.
        fixed_size: whether the final models must have this size; otherwise the largest that leaves time for
            `FEWEST_LARGER` steps.
        seed, latents, augment: of all models.
        options: of the study: device, executor.
        progress: called as progress(what is measured, done, all).

    Raises:
        ValueError: the minutes are too few; the message says how many are needed.
    """
    seconds, searched = 60 * minutes, min(SEARCH_SIZE, size)
    costs: dict[tuple[int, str], Cost] = {}

    def cost(at: int, network: Network) -> Cost:
        if (at, network) not in costs:
            planned = Round(size=at, network=network, steps=1000, seeds=SEARCH_SEEDS)
            costs[at, network] = measured(
                images, size, planned, families, latents=latents, augment=augment, options=options, progress=progress
            )
        return costs[at, network]

    settings = settings_of(families)
    network = _network(cost, searched, settings, seconds)
    search, search_seconds = _search(cost(searched, network), searched, network, settings, SEARCH_SHARE * seconds)
    if fixed_size:
        sizes = [size]
    elif search.network == "dense":  # too little time for convolutions, and for larger images all the more
        sizes = [searched]
    else:
        sizes = sorted((smaller for smaller in SIZES if smaller <= size), reverse=True)
    final, final_seconds = _final(cost, sizes, search, FINAL_SHARE * seconds)
    plan = Plan(minutes=minutes, seed=seed, latents=latents, augment=augment, size=size, search=search, final=final)
    if (needed := max(search_seconds / SEARCH_SHARE, final_seconds / FINAL_SHARE)) > seconds:
        raise ValueError(
            f"minutes (--minutes) must be {ceil(MARGIN * needed / 60)} or more here, for the shortest training of "
            f"{counted(plan.n_models, 'model')} at the speed measured just now; got {minutes:g}"
        )
    return plan


def _network(cost: Costing, size: int, settings: list[Setting], seconds: float) -> Network:
    """The network of the models: conv, unless one of the rounds has too little time for it."""
    own, number = cost(size, "conv"), min(SAME_SIZE[0], len(settings))
    searched = own.steps(settings[:LEAST_SETTINGS], SEARCH_SEEDS, SEARCH_SHARE * seconds)
    final = own.steps(settings[:1] * number, FINAL_SEEDS, FINAL_SHARE * seconds)
    return "conv" if searched >= SEARCH_STEPS["conv"][0] and final >= FINAL_STEPS["conv"][0] else "dense"


def _search(
    cost: Cost, size: int, network: Network, settings: list[Setting], seconds: float
) -> tuple[SearchRound, float]:
    """A search with as many settings as leave time for the least number of steps; and the seconds for these steps."""
    fewest, most = SEARCH_STEPS[network]
    while len(settings) > LEAST_SETTINGS and cost.steps(settings, SEARCH_SEEDS, seconds) < fewest:
        settings = settings[:-1]
    steps = int(np.clip(cost.steps(settings, SEARCH_SEEDS, seconds), fewest, most))
    search_round = SearchRound(size=size, network=network, steps=steps, seeds=SEARCH_SEEDS, settings=settings)
    return search_round, cost.seconds(settings, SEARCH_SEEDS, fewest)


def _final(cost: Costing, sizes: Sequence[int], search: SearchRound, seconds: float) -> tuple[FinalRound, float]:
    """A last round of the largest size that leaves time for the least number of steps; and their seconds."""
    for size in sizes:
        number, multiples = SAME_SIZE if size == search.size else LARGER
        network: Network = search.network if size == search.size else "conv"
        fewest, most = FINAL_STEPS[network] if size == search.size else (FEWEST_LARGER, FINAL_STEPS[network][1])
        planned = FinalRound(
            size=size, network=network, steps=fewest, seeds=FINAL_SEEDS, settings=number, multiples=multiples
        )
        settings = planned.chosen(search.settings)
        steps = cost(size, network).steps(settings, FINAL_SEEDS, seconds)
        if steps >= fewest or size == sizes[-1]:
            final_round = planned.model_copy(update={"steps": int(np.clip(steps, fewest, most))})
            return final_round, cost(size, network).seconds(settings, FINAL_SEEDS, fewest)
    raise ValueError("there is no size to train at")


def study_of(
    images: Path, whole: int, planned: Round, seeds: Sequence[int], settings: Sequence[Setting], *, latents: int,
    options: Mapping[str, Any], name: str, augment: str = NO_AUGMENTATION,
) -> str:  # fmt: skip
    """The YAML of an ordinary study of these settings, on images of `whole` x `whole` that are shrunk."""
    size, steps, network = planned.size, planned.steps, planned.network
    shared = {"latents": latents, "network": network, "learning_rate": LEARNING_RATES[network]}
    if augment != NO_AUGMENTATION:
        shared["augment"] = str(augment)
    return written(
        {
            "name": name,
            "dataset": {"name": str(images), **({"shrink": whole // size} if whole != size else {})},
            "families": [{"name": setting.family, **setting.hyperparameters, **shared} for setting in settings],
            "seeds": list(seeds),
            "steps": steps,
            "batch_size": BATCH_SIZES[network],
            "hold_out": HELD_OUT,
            "hold_out_every": max(1, steps // EVALUATIONS),
            "patience": PATIENCE,
            "udr": {"similarity": "lasso"},
            **options,
        }
    )


def measured(
    images: Path, whole: int, planned: Round, families: Sequence[str], *, latents: int, options: Mapping[str, Any],
    progress: Measuring | None, augment: str = NO_AUGMENTATION,
) -> Cost:  # fmt: skip
    """The cost of a model of each family in such a round, from a few measured steps.

    On a GPU, models of a family are trained together, as many as the search has at most.
    """
    settings, seeds = settings_of(families), range(planned.seeds)
    text = study_of(
        images, whole, planned, seeds, settings, latents=latents, augment=augment, options=options, name="measured"
    )
    with TemporaryDirectory() as folder:
        file = Path(folder) / "study.yaml"
        file.write_text(text, encoding="utf-8")
        estimated = estimate(Study.load(file, Path(folder) / "study").part(), progress=progress)
    # The minutes are those of the clock, also where other work shares the cores.
    per_step = {row.family: estimated.load * row.seconds_per_step for row in estimated.rows}
    once = {
        row.family: estimated.load * row.seconds / row.waiting - row.steps * per_step[row.family]
        for row in estimated.rows
    }
    return Cost(once, per_step, estimated.processes, {row.family: row.together for row in estimated.rows})
