"""By which signs a model is best chosen without labels: UDR in several forms, ELBO, KL, agreement, and combinations.

    unbraid study run evidence/studies/udr-2020-laptop.yaml --out reproduced/udr-2020-laptop    # and the three others
    python evidence/benchmarks/selection.py reproduced/udr-2020-laptop reproduced/udr-2020-rooms-laptop \\
        reproduced/selection-cars-laptop reproduced/selection-teapot-laptop --json evidence/benchmarks/selection.json \\
        --keep evidence/benchmarks/selection
    python evidence/benchmarks/selection.py evidence/benchmarks/selection/*.npz    # the same from what was kept, without any training

The rule, which was written before two of the four studies ran and before this program had seen any of them:

- Models that tell less than one bit of their image are left out, whatever a rule would do with them.
- 2 000 times six settings are drawn, four seeds of each. Every rule picks a model of these; pairs of models are those
  within the draw. A pick is judged by the share of the other models that it beats by each of five measures that need
  labels, averaged over these.
- `unbraid rank` takes another rule than the highest UDR (all to all, penalty .1) where that beats .02 more of the
  models on average over the four datasets, the 95 % interval of this difference is above 0, and it is not lower on any
  dataset by .05 or more. Of several such rules the one of the highest mean; of two within .01 the first of the list.
- Settings are the units: intervals are those of the jackknife over the settings of each dataset, with Student's t.
  Datasets are taken as they are: nothing is said of a dataset that is none of these.
"""

import argparse
import itertools
import json
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from scipy.optimize import linear_sum_assignment
from scipy.stats import spearmanr, t

import unbraid
from unbraid.base.types import BoolArray, FloatArray, IntArray
from unbraid.metrics import udr
from unbraid.studies.snapshot import StudySnapshot
from unbraid.studies.study_ranking import candidates_of

MEASURES = ("mig.score", "dci_lasso.disentanglement", "sap.score", "modularity.score", "factor_vae_score.score")
TODAY = "UDR, all to all, penalty .1"  # what `unbraid rank` picks by
N_SETTINGS, N_SEEDS, DRAWS = 6, 4, 2_000
NEAR = 0.95
BY_LABELS = " (by labels)"  # what a rule is called that is here for comparison alone
THRESHOLD = 0.01  # nats


@dataclass(frozen=True)
class Population:
    """The models of one study that tell a bit or more of their image."""

    name: str
    n_left_out: int
    setting: IntArray  # (n_models,)
    measures: FloatArray  # (n_models, 5), higher is better
    scalars: dict[str, FloatArray]  # (n_models,) signs of one model alone
    pairs: dict[str, FloatArray]  # (n_models, n_models) how far two models agree, NaN on the diagonal

    def save(self, folder: Path) -> None:
        """Keep it as a file of its name; `read` reads it."""
        folder.mkdir(parents=True, exist_ok=True)
        parts = {f"scalar {name}": each for name, each in self.scalars.items()}
        parts |= {f"pairs {name}": each.astype(np.float32) for name, each in self.pairs.items()}
        np.savez_compressed(
            folder / f"{self.name}.npz",
            n_left_out=self.n_left_out,
            setting=self.setting,
            measures=self.measures,
            **parts,
        )

    @classmethod
    def read(cls, path: Path) -> "Population":
        with np.load(path) as held:
            parts = {name: held[name].astype(float) for name in held.files if " " in name}
            return cls(
                name=path.stem,
                n_left_out=int(held["n_left_out"]),
                setting=held["setting"],
                measures=held["measures"],
                scalars={name.split()[1]: each for name, each in parts.items() if name.startswith("scalar")},
                pairs={name.split()[1]: each for name, each in parts.items() if name.startswith("pairs")},
            )

    def within(self, name: str, models: IntArray) -> FloatArray:
        """Median agreement of each of some models with the other seeds of its setting; -inf where it has none."""
        same = self.setting[models][:, None] == self.setting[models]
        return medians(np.where(same, self.pairs[name][np.ix_(models, models)], np.nan))

    def to_all(self, name: str, models: IntArray) -> FloatArray:
        """Median agreement of each of some models with all others of them."""
        return medians(self.pairs[name][np.ix_(models, models)])


def medians(pairs: FloatArray) -> FloatArray:
    known = np.isfinite(pairs).any(axis=1)
    found = np.full(len(pairs), -np.inf)
    found[known] = np.nanmedian(pairs[known], axis=1)
    return found


Sign = Callable[[Population, IntArray], FloatArray]


def scalar(name: str, sign: float = 1.0) -> Sign:
    return lambda population, models: sign * population.scalars[name][models]


def mean_rank(*signs: Sign) -> Sign:
    return lambda population, models: np.mean([ranks(each(population, models)) for each in signs], axis=0)


def ranks(values: FloatArray) -> FloatArray:
    return (values[:, None] > values).sum(axis=1) + 0.5 * (values[:, None] == values).sum(axis=1)


def near_then(first: Sign, second: Sign) -> Sign:
    """The second, of models whose first is near the highest."""

    def found(population: Population, models: IntArray) -> FloatArray:
        values = first(population, models)
        return np.where(values >= NEAR * values.max(), second(population, models), -np.inf)

    return found


def setting_then(first: Sign, second: Sign) -> Sign:
    """The second, of models of the setting whose median of the first is highest."""

    def found(population: Population, models: IntArray) -> FloatArray:
        values, own = first(population, models), population.setting[models]
        best = max(np.unique(own), key=lambda each: np.median(values[own == each]))
        return np.where(own == best, second(population, models), -np.inf)

    return found


OURS: Sign = lambda population, models: population.to_all("ours", models)  # noqa: E731
AGREEMENT: Sign = lambda population, models: population.to_all("mcc", models)  # noqa: E731
ELBO = scalar("elbo")

SIGNS: dict[str, Sign] = {
    TODAY: OURS,
    "UDR, within settings, penalty .1": lambda population, models: population.within("ours", models),
    "UDR, within settings, as the paper": lambda population, models: population.within("paper", models),
    "UDR, all to all, as the paper": lambda population, models: population.to_all("paper", models),
    "UDR, all to all, Spearman": lambda population, models: population.to_all("spearman", models),
    "agreement by MCC, all to all": AGREEMENT,
    "ELBO": ELBO,
    "lowest KL": scalar("kl", -1.0),
    "highest KL": scalar("kl"),
    "fewest informative latents": scalar("informative", -1.0),
    "most informative latents": scalar("informative"),
    "mean rank of UDR and ELBO": mean_rank(OURS, ELBO),
    "mean rank of UDR, agreement and ELBO": mean_rank(OURS, AGREEMENT, ELBO),
}
RULES: dict[str, Sign] = SIGNS | {
    "UDR at least .95 of the highest, then ELBO": near_then(OURS, ELBO),
    "best setting by UDR, then UDR": setting_then(OURS, OURS),
    "best setting by UDR, then UDR within it": setting_then(
        OURS, lambda population, models: population.within("ours", models)
    ),
    "best setting by UDR, then ELBO": setting_then(OURS, ELBO),
    "best setting by agreement, then ELBO": setting_then(AGREEMENT, ELBO),
    f"MIG{BY_LABELS}": lambda population, models: population.measures[models, 0],
}


def gathered(folder: Path) -> Population:
    """What is known of the models of a study."""
    study = unbraid.Study.load(folder)
    (snapshot,) = study.snapshots()
    candidates, _ = candidates_of(snapshot.runs)
    table = study.results().set_index("run")
    measured(table, snapshot)
    learnt = [each for each in candidates if not each.tells_nothing]
    rows = table.loc[[each.run for each in learnt]]
    keys = {key: place for place, key in enumerate(dict.fromkeys((each.family, each.setting) for each in learnt))}
    codes = [each.matrix() for each in learnt]
    signal = [np.asarray(each.signal) for each in learnt]
    kl = [np.asarray(each.kl) for each in learnt]
    pairs = {
        "ours": udr(codes, kl=signal, alpha=0.1).pairs,
        "paper": udr(codes, kl=kl, alpha="cv").pairs,
        "spearman": udr(codes, kl=kl, similarity="spearman").pairs,
        "mcc": agreement(codes, [each > THRESHOLD for each in signal]),
    }
    return Population(
        name=snapshot.config.name or folder.name,
        n_left_out=len(candidates) - len(learnt),
        setting=np.array([keys[each.family, each.setting] for each in learnt]),
        measures=rows[list(MEASURES)].to_numpy(float),
        scalars={
            "elbo": -(rows["train.reconstruction"] + rows["train.kl"]).to_numpy(float),
            "kl": np.array([each.sum() for each in kl]),
            "informative": np.array([float((each > THRESHOLD).sum()) for each in signal]),
        },
        pairs=pairs,
    )


def measured(table: Any, snapshot: StudySnapshot) -> None:
    """Add the measures that a study did not ask for."""
    missing = [name for name in MEASURES if name not in table]
    for run in snapshot.runs if missing else ():
        representation = run.codes()
        card = unbraid.score(representation, metrics=[name.partition(".")[0] for name in missing])
        for name in missing:
            metric, _, value = name.partition(".")
            table.loc[run.id, name] = getattr(card[metric], value)


def agreement(codes: Sequence[FloatArray], informative: Sequence[BoolArray]) -> FloatArray:
    """(n_models, n_models) mean |correlation| of informative latents with their match, 0 of those without one."""
    kept = [each[:, own] - each[:, own].mean(axis=0) for each, own in zip(codes, informative, strict=True)]
    kept = [each / np.maximum(np.sqrt((each**2).sum(axis=0)), 1e-300) for each in kept]
    found = np.full((len(kept), len(kept)), np.nan)
    for i, j in itertools.combinations(range(len(kept)), 2):
        matrix = np.abs(kept[i].T @ kept[j])
        rows, columns = linear_sum_assignment(matrix, maximize=True)
        found[i, j] = found[j, i] = matrix[rows, columns].sum() / max(*matrix.shape, 1)
    return found


def draws_of(population: Population, rng: np.random.Generator) -> list[IntArray]:
    """Models of six settings that have four or more, four of each."""
    names, counts = np.unique(population.setting, return_counts=True)
    full = names[counts >= N_SEEDS]
    return [
        np.concatenate(
            [
                rng.choice(np.flatnonzero(population.setting == each), N_SEEDS, replace=False)
                for each in rng.choice(full, N_SETTINGS, replace=False)
            ]
        )
        for _ in range(DRAWS)
    ]


def shares(population: Population, draws: Sequence[IntArray]) -> dict[str, FloatArray]:
    """(n_draws, 5) share of the other models that the pick of each rule beats, by each measure."""
    found: dict[str, list[FloatArray]] = {name: [] for name in RULES}
    for models in draws:
        own = population.measures[models]
        beaten = np.stack([ranks(column) - 0.5 for column in own.T], axis=1) / (len(models) - 1)
        for name, rule in RULES.items():
            found[name].append(beaten[np.argmax(rule(population, models))])
    return {name: np.array(each) for name, each in found.items()}


def jackknife(values: FloatArray, without: BoolArray) -> tuple[float, float]:
    """Mean over draws and its variance, by leaving out one setting at a time.

    Args:
        values: (n_draws,).
        without: (n_settings, n_draws) whether a draw has no model of a setting.
    """
    left = np.array([values[each].mean() for each in without])
    return float(values.mean()), float((len(left) - 1) / len(left) * ((left - left.mean()) ** 2).sum())


def correlations(population: Population) -> dict[str, dict[str, list[float]]]:
    """Of each sign and measure: Spearman's correlation over all models, and its jackknife interval over settings."""
    names = np.unique(population.setting)
    everything = np.arange(len(population.setting))
    groups = [everything, *(np.flatnonzero(population.setting != each) for each in names)]
    found: dict[str, dict[str, list[float]]] = {}
    for name, sign in SIGNS.items():
        whole, *left = np.array(
            [
                [spearmanr(sign(population, models), column).statistic for column in population.measures[models].T]
                for models in groups
            ]
        )
        deviation = np.sqrt((len(left) - 1) / len(left) * ((left - np.mean(left, axis=0)) ** 2).sum(axis=0))
        half = t.ppf(0.975, len(left) - 1) * deviation
        ends = np.stack([whole, np.maximum(whole - half, -1.0), np.minimum(whole + half, 1.0)], axis=1)
        found[name] = {measure: each.round(3).tolist() for measure, each in zip(MEASURES, ends, strict=True)}
    return found


def judged(populations: Sequence[Population]) -> dict[str, Any]:
    """Of each rule: the share that its pick beats on each dataset, and by how much it differs from today's."""
    rng = np.random.default_rng(0)
    found: dict[str, dict[str, Any]] = {name: {"datasets": {}} for name in RULES}
    differences: dict[str, list[tuple[float, float, int]]] = {name: [] for name in RULES}
    for population in populations:
        draws = draws_of(population, rng)
        names = np.unique(population.setting)
        without = np.array([[each not in population.setting[models] for models in draws] for each in names])
        without = without[~without.all(axis=1)]
        by_rule = shares(population, draws)
        today = by_rule[TODAY].mean(axis=1)
        for name, each in by_rule.items():
            mean, variance = jackknife(each.mean(axis=1), without)
            half = t.ppf(0.975, len(without) - 1) * np.sqrt(variance)
            found[name]["datasets"][population.name] = {
                "share": round(mean, 3), "low": round(mean - half, 3), "high": round(mean + half, 3),
                "by_measure": dict(zip(MEASURES, each.mean(axis=0).round(3).tolist(), strict=True)),
            }  # fmt: skip
            differences[name].append((*jackknife(each.mean(axis=1) - today, without), len(without) - 1))
    for name, each in differences.items():
        means, variances, degrees = np.array(each).T
        mean, deviation = means.mean(), np.sqrt(variances.sum()) / len(means)
        freedom = variances.sum() ** 2 / (variances**2 / degrees).sum() if deviation > 0 else 1.0  # Welch's
        half = t.ppf(0.975, freedom) * deviation
        found[name]["share"] = round(np.mean([own["share"] for own in found[name]["datasets"].values()]), 3)
        found[name]["above_today"] = [round(float(end), 3) for end in (mean, mean - half, mean + half)]
        blind = not name.endswith(BY_LABELS)
        found[name]["takes_over"] = bool(blind and mean >= 0.02 and mean - half > 0 and means.min() > -0.05)
    return found


def main() -> None:
    """Print how far each sign goes with labels, and how good what it picks is."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("studies", nargs="+", type=Path, help="folders of studies, or files that --keep wrote")
    parser.add_argument("--json", type=Path)
    parser.add_argument("--keep", type=Path, metavar="FOLDER", help="write what is known of each study here")
    arguments = parser.parse_args()
    populations = [Population.read(path) if path.suffix == ".npz" else gathered(path) for path in arguments.studies]
    for population in populations if arguments.keep else ():
        population.save(arguments.keep)
    result: dict[str, Any] = {"datasets": {}, "rules": judged(populations)}
    for population in populations:
        result["datasets"][population.name] = {
            "models": len(population.setting), "left_out": population.n_left_out,
            "settings": len(np.unique(population.setting)), "spearman": correlations(population),
        }  # fmt: skip
    for name, each in result["datasets"].items():
        print(f"\n{name}: {each['models']} models of {each['settings']} settings; {each['left_out']} tell nothing")
        for sign, own in each["spearman"].items():
            print(f"  {sign:40}", *(f"{rho:5.2f} [{low:5.2f}, {high:5.2f}]" for rho, low, high in own.values()))
    print("\nShare of the other models that the pick beats, and the difference from today's")
    for rule, each in result["rules"].items():
        own = [f"{dataset['share']:.2f}" for dataset in each["datasets"].values()]
        mean, low, high = each["above_today"]
        verdict = "takes over" if each["takes_over"] else ""
        print(f"  {rule:44}", *own, f"  mean {each['share']:.3f}  {mean:+.3f} [{low:+.3f}, {high:+.3f}] {verdict}")
    if arguments.json:
        arguments.json.write_text(json.dumps(result, indent=1) + "\n")


if __name__ == "__main__":
    main()
