"""Make a zoo of the finished models of studies."""

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from zoo_defects import defects_of, used_codes
from zoo_writing import packed, write

from unbraid.base.arguments import check_whole, list_of
from unbraid.base.optional import require
from unbraid.base.types import Progress
from unbraid.data import Representation
from unbraid.metrics import METRICS, NotDefined
from unbraid.runs.folder import read_codes
from unbraid.scoring.encoding import drawn
from unbraid.scoring.engine import score_each
from unbraid.scoring.scored import Scored
from unbraid.zoo.zoo_files import SUFFIX, unpacked
from unbraid.zoo.zoo_json import FORMAT

if TYPE_CHECKING:
    from unbraid.studies.snapshot import RunView

ROWS = 10_000
# Of the standard ones, those that take half a second of 10 000 rows at most, and need nothing but codes and factors.
SCORED = (
    "mig", "dci_lasso", "med", "sap", "snc", "modularity", "irs", "explicitness", "beta_vae_score", "factor_vae_score",
    "mcc", "r2",
)  # fmt: skip

Keep = Callable[[str], bool]


@dataclass(frozen=True)
class NamedRun:
    """A finished run of a study, and what it is called in the zoo."""

    name: str  # within its dataset
    study: str
    run: "RunView"
    untrained: bool = False  # whether it is meant as it was before its first step

    def codes(self, images: Any = None) -> Representation:
        """Those that the run keeps; of untrained weights those of the same images of the dataset."""
        representation = read_codes(self.run.path, self.run.status)
        if not self.untrained:
            return representation
        from unbraid.runs.run import open_run

        run = open_run(self.run.path, records=(self.run.config, self.run.status))
        return run.untrained().representation(images, len(representation))


def build(
    studies: Sequence[str | Path],
    folder: str | Path,
    *,
    rows: int = ROWS,
    untrained: int = 0,
    keep: Keep | None = None,
    progress: Progress | None = None,
) -> list[Path]:
    """Make a zoo of the finished models of studies, one file for each dataset.

    Nothing is trained: the codes that each run keeps are of the same images for all runs of a dataset. The studies are
    only read, and may still be running. A run that two studies have is taken once.

    Args:
        studies: folders of studies, as `unbraid study run` makes them. Names of models may depend on their order.
        folder: where the files are written; they replace those of the same datasets.
        rows: of each model, drawn by a fixed seed; all that the run keeps where these are fewer.
        untrained: so many models of each dataset are there a second time, as they were before their first step, such as
            "sprites/beta_vae-untrained-s0"; of different seeds. Their codes are encoded now.
        keep: a function that says whether to keep the model of a name, such as "sprites/beta_tcvae-b6-s0"; default all.
        progress: called as progress(model, done, total).

    Returns:
        The files written.

    Raises:
        ImportError: torch, which reads studies, is not installed.
        FileNotFoundError: a folder is not that of a study.
        ValueError: no model is left; a run keeps codes of other images than the others of its dataset, or codes that
            are not finite.
        TypeError: keep is no function.
    """
    if keep is not None and not callable(keep):
        raise TypeError(f"keep must be a function from the name of a model to whether it is kept; got {keep!r}")
    check_whole("rows", rows, 2)
    check_whole("untrained", untrained, 0)
    candidates = {dataset: [*members, *_before(members, untrained)] for dataset, members in named_runs(studies).items()}
    chosen = {
        dataset: [named for named in members if keep is None or keep(f"{dataset}/{named.name}")]
        for dataset, members in candidates.items()
    }
    if not (total := sum(map(len, chosen.values()))):
        raise ValueError("no finished model to make a zoo of")
    Path(folder).mkdir(parents=True, exist_ok=True)
    done, written = 0, []
    for dataset, members in chosen.items():
        if not members:
            continue
        first, images = candidates[dataset][0], _images(members)
        whole = first.codes()
        models, planes = [], []
        for named in members:
            if progress is not None:
                progress(f"{dataset}/{named.name}", done, total)
            representation = named.codes(images)
            if representation.names != whole.names or not np.array_equal(representation.factors, whole.factors):
                raise ValueError(f"{named.run.path}: its codes are of other images than those of {first.run.path}")
            try:
                entry, codes = _entry(named, representation, rows)
            except ValueError as error:
                raise ValueError(f"{named.run.path}: {error}") from error
            models.append(entry)
            planes.append((named.name, codes))
            done += 1
        rows_kept = whole.keep_rows(drawn(len(whole), rows, seed=0))
        path = Path(folder) / f"{dataset}{SUFFIX}"
        write(path, _record(dataset, first.run.config["dataset"], rows_kept, models), rows_kept.factors, planes)
        written.append(path)
    return written


def _before(members: Sequence[NamedRun], count: int) -> list[NamedRun]:
    """Trained models as they were before their first step, each of another seed."""
    from unbraid.families.family_table import find_family

    by_seed: dict[int, NamedRun] = {}
    for named in members:
        if not find_family(named.run.family).fit:
            by_seed.setdefault(named.run.seed, named)
    return [
        replace(named, name=f"{named.run.family}-untrained-s{seed}", untrained=True)
        for seed, named in [*by_seed.items()][:count]
    ]


def _images(members: Sequence[NamedRun]) -> Any:
    """The dataset, opened once for all models that have to be encoded."""
    untrained = next((named for named in members if named.untrained), None)
    if untrained is None:
        return None
    from unbraid.runs.run import open_run

    return open_run(untrained.run.path).dataset()


def named_runs(studies: Sequence[str | Path]) -> dict[str, list[NamedRun]]:
    """The finished runs of studies by dataset, each once, with its name.

    Raises:
        FileNotFoundError: a folder is not that of a study.
    """
    require("torch", "train", "reading studies")
    from unbraid.studies.study import Study

    runs: dict[str, dict[str, tuple[str, RunView]]] = {}  # by content of the images, then by id
    names_by_content: dict[str, str] = {}
    for folder in list_of("studies", studies):
        for snapshot in Study.load(folder).snapshots():
            images = snapshot.environment.dataset
            for run in snapshot.runs:
                if run.status.get("state") == "finished" and run.state != "failed" and not run.is_added:
                    names_by_content.setdefault(images["content"], str(images["name"]))
                    runs.setdefault(images["content"], {}).setdefault(run.id, (snapshot.config.name, run))
    names = _datasets(names_by_content)
    return {names[content]: list(_named(own.values())) for content, own in runs.items()}


def _datasets(names_by_content: Mapping[str, str]) -> dict[str, str]:
    """What each dataset is called, by content; the first of a name keeps it, options or not."""
    unique_names: dict[str, str] = {}
    for content, name in names_by_content.items():
        plain = re.sub(r"[^A-Za-z0-9_.-]+", "_", Path(name).name) or "images"
        unique_names[content] = f"{plain}-{content[:4]}" if plain in unique_names.values() else plain
    return unique_names


def _named(runs: Any) -> Iterator[NamedRun]:
    """Runs of one dataset with their names: family, the hyperparameters that are its own, seed."""
    used_names: set[str] = set()
    for study, run in runs:
        parts = [
            run.family.rpartition(":")[2],
            *(_short(*option) for option in _naming_hyperparameters(run)),
            f"s{run.seed}",
        ]
        name = re.sub(r"[^A-Za-z0-9_.+-]+", "_", "-".join(parts))[:90]
        name = f"{name}-{run.id[:4]}" if name in used_names else name
        used_names.add(name)
        yield NamedRun(name, study, run)


def _naming_hyperparameters(run: "RunView") -> list[tuple[str, Any]]:
    """Hyperparameters that name a run: those that the family's published grids vary, and others not at their defaults.

    Those of networks and training (COMMON) are left out: the id distinguishes two models that differ in these alone.
    """
    from unbraid.families.family_table import find_family

    row = find_family(run.family)
    own = [name for name in row.swept if name in run.hyperparameters and name not in COMMON]
    more = [
        name
        for name, hyperparameter in row.hyperparameters.items()
        if name not in COMMON and name in run.hyperparameters and run.hyperparameters[name] != hyperparameter.default
    ]
    names = [name for name in row.hyperparameters if name in own or name in more]
    return [(name, run.hyperparameters[name]) for name in names]


# Hyperparameters of networks and training, which are left out of names.
COMMON = frozenset(
    ("network", "likelihood", "sigma", "learning_rate", "capacity_steps", "discriminator_width", "beta_warmup")
)


def _short(name: str, value: Any) -> str:
    """`b6` of beta 6, `lo5` of lambda_od 5."""
    initials = "".join(word[0] for word in name.split("_"))
    return f"{initials}{value:g}" if isinstance(value, int | float) else f"{initials}_{value}"


def _entry(named: NamedRun, representation: Representation, rows: int) -> tuple[dict[str, Any], Any]:
    """The record of a model in the file, and its codes."""
    from unbraid.families.family_table import find_family

    run = named.run
    rows_kept = representation.keep_rows(drawn(len(representation), rows, seed=0))
    planes, centre, scale = packed(rows_kept.codes)
    kl = representation.mean_kl()
    entry = {
        "name": named.name,
        "run": run.id,
        "study": named.study,
        "family": run.family,
        "setting": "untrained" if named.untrained else run.setting,
        "hyperparameters": dict(run.hyperparameters),
        "seed": run.seed,
        "steps": 0 if named.untrained else None if find_family(run.family).fit else run.config.get("steps"),
        "commit": (run.status.get("provenance") or {}).get("commit"),
        "n_codes": representation.codes.shape[1],
        "centre": centre.tolist(),
        "scale": scale.tolist(),
        "kl": None if kl is None else kl.tolist(),
        "informative": int(used_codes(representation).sum()),
        "defects": [*(["untrained"] if named.untrained else []), *defects_of(representation)],
        "study_scores": {}
        if named.untrained
        else {
            f"{name}.{scored.headline}": scored.values[scored.headline] for name, scored in run.scores.metrics.items()
        },
        "scores": scores_of(
            replace(rows_kept, codes=unpacked(planes, centre, scale), log_variances=None, prior_kl=None)
        ),
    }
    return entry, planes


def scores_of(representation: Representation) -> dict[str, float]:
    """Headlines of the metrics of SCORED, of those that have a meaning on these factors.

    Raises:
        ValueError: one of them failed.
    """
    headlines = {}
    with closing(score_each(representation, {name: METRICS[name] for name in SCORED}, with_chance=False)) as scores:
        for name, scored in scores:
            if isinstance(scored, Scored):
                headlines[name] = float(scored.headline)
            elif not isinstance(scored, NotDefined):
                raise ValueError(f"metric {name} failed: {scored}") from scored
    return headlines


def _record(
    dataset: str, images: Mapping[str, Any], representation: Representation, models: list[Any]
) -> dict[str, Any]:
    blank = [()] * len(representation.names)
    factors = [
        {"name": name, "kind": kind, "size": size, "levels": list(levels), "period": float(period)}
        for name, kind, size, levels, period in zip(
            representation.names, representation.kinds, representation.sizes or [None] * len(blank),
            representation.levels or blank, representation.periods or [0.0] * len(blank), strict=True,
        )
    ]  # fmt: skip
    return {
        "format": FORMAT,
        "dataset": dataset,
        "options": dict(images["options"]),
        "content": images["content"],
        "n_images": images["n_images"],
        "rows": len(representation),
        "factors": factors,
        "metrics": {name: METRICS[name].version for name in SCORED},
        "models": models,
    }
