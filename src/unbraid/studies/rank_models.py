"""Which of many models is best, without labels: arrays, files, runs or a whole study."""

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, TypeAlias, cast, get_args

import numpy as np

from unbraid.base.arguments import check_choice, list_of
from unbraid.base.arrays import as_array
from unbraid.base.cluster import on_cluster
from unbraid.base.types import ArrayLike
from unbraid.data import Representation
from unbraid.data.representation import load_codes
from unbraid.data.row_index import match_rows
from unbraid.files.tables import read_sparse
from unbraid.metrics.udr import Similarity
from unbraid.metrics.udr_wide import Correlation, wide_udr
from unbraid.ranking.candidate import Candidate
from unbraid.ranking.rank_candidates import (
    content_of,
    different_untrained,
    median_scores,
    rank_candidates,
    with_agreeing,
    without_copies,
)
from unbraid.ranking.ranking import Compare, Informative, Ranking, RankingOptions
from unbraid.runs.folder import find_codes, read_codes
from unbraid.runs.foreign_models import is_run
from unbraid.runs.grouping import run_columns
from unbraid.studies.opening import is_opened, study_at

if TYPE_CHECKING:
    from unbraid.runs.run import Run
    from unbraid.studies.study import Study

CODES_ALONE = (
    "codes alone do not tell how far a model was trained: untrained encoders agree as well, with UDR .09 to "
    ".30 among dense ones of 16 x 16 images; give codes of your untrained models (untrained=, --untrained) to see it"
)
OF_MODELS = {  # options that a study does not have, and what it has instead
    "groups": "a study has its own groups, its families and settings; choose by compare",
    "top": "top is for models given by themselves; a study compares as its YAML says",
    "untrained": "a study keeps its own untrained models; say `baselines: true` in its YAML",
}
NOT_ROTATED = "by top, scores are not compared with those of randomly rotated codes"

Executor = Literal["local", "ray"]
Model: TypeAlias = "ArrayLike | Representation | Run | Candidate | _WideFile | str | Path"


def rank(
    models: "Study | str | Path | Mapping[str, Model] | Sequence[Model]",
    *,
    groups: Sequence[str] | None = None,
    compare: Compare | None = None,
    similarity: Similarity | Literal["pearson"] | None = None,
    top: int | None = None,
    alpha: Literal["cv"] | float | None = None,
    informative: Informative | None = None,
    kl_threshold: float | None = None,
    aggregate: Literal["paper", "dlib"] | None = None,
    n_comparisons: int | None = None,
    seed: int | None = None,
    untrained: Sequence[Model] | Mapping[str, Model] = (),
    executor: Executor = "local",
    address: str | None = None,
    progress: Callable[[int, int], None] | None = None,
) -> Ranking:
    """Rank models without labels, by how well their latents match those of the other models (UDR).

    Args:
        models: a study or its folder; or models, by name or in a list: codes (n_samples, n_codes), a `Representation`,
            a representation file, a run or its folder. All are codes of the same samples in the same order; frames of
            pandas that have an index are matched by it.
        groups: one label per model; only models of one group are compared, unless `compare` is "all". Default: of
            runs, their settings are compared as `compare` says; all other models with each other.
        compare: "same-hyperparameters", "same-family" or "all"; default for a study what its YAML says, else "all".
        informative: "signal" or "kl", which latents count; see `RankingOptions`, which also says what the paper does.
        similarity, alpha, kl_threshold, aggregate, n_comparisons, seed: as in `unbraid.metrics.udr`; default for a
            study what its YAML says, else those of `RankingOptions`.
        top: for codes that are thousands wide, sparse ones among them: by similarity "spearman" or "pearson", of each
            code the N most similar; see `unbraid.metrics.wide_udr`. All codes that vary count.
        untrained: codes of the same samples by two or more untrained models of the same architectures and different
            seeds, as for `models`: no model that scores as low as they do among each other is `best`. Of a study,
            `baselines: true` in its YAML keeps them.
        executor: "local": on all cores of this machine. "ray": on those of a Ray cluster, with the same bits where the
            processors are of the same kind; not with top.
        address: of that cluster, "auto" (default) for the one that this machine is part of, or host:port.
        progress: called as progress(done, total), in models, and then in rotations of those that may be best; with
            `top` in pairs of models.

    Returns:
        Ranking. `best` is the name of the model of the highest score among those that can be called good; None where
            there are none, and `why_none()` says why (`Ranking.choose` has the rules);
            `scores` from 0, higher is better; `to_frame()` all models, the best first; `left_out` says which could not
            be compared, and why.

    Raises:
        NothingToRank: no two models can be compared; the message gives the reasons.
        ValueError: an option is out of range, there are not as many groups as models, or no cluster answers.
        FileNotFoundError: there is no such file or folder.
        ImportError: executor "ray" without Ray.

    Reference:
        Duan et al. 2020, "Unsupervised Model Selection for Variational Disentangled Representation Learning".

    Example:
        >>> codes = np.random.default_rng(0).normal(size=(500, 3))
        >>> ranking = rank({"one": codes, "flipped": -codes[:, ::-1], "noise": codes[::-1] ** 2}, similarity="spearman")
        >>> ranking.best, ranking.scores.round(2).tolist()
        ('one', [0.51, 0.51, 0.04])
    """
    options = {
        "compare": compare, "similarity": similarity, "alpha": alpha, "informative": informative,
        "kl_threshold": kl_threshold, "aggregate": aggregate, "n_comparisons": n_comparisons, "seed": seed,
    }  # fmt: skip
    chosen: dict[str, Any] = {name: value for name, value in options.items() if value is not None}
    if similarity == "pearson" and top is None:
        raise ValueError("similarity 'pearson' compares codes that are thousands wide; give top, such as 10")
    untrained = list(untrained.values()) if isinstance(untrained, Mapping) else untrained  # by name, as models are
    where = executed(executor, address, top)
    with study_at(models) as study:
        if is_opened(study):
            for name, value in {"groups": groups, "top": top, "untrained": untrained or None}.items():
                if value is not None:
                    raise ValueError(OF_MODELS[name])
            with where:
                return study.rank(progress=progress and (lambda _, done, total: progress(done, total)), **chosen)
    named, row_notes = match_rows(models if isinstance(models, Mapping) else _named(models))  # pyright: ignore[reportArgumentType]
    if groups is not None and len(groups := list_of("groups", groups)) != len(named):
        raise ValueError(f"groups must have one label per model ({len(named)}); got {len(groups)}")
    if top is not None:
        inapplicable = set(chosen) - {"similarity", "seed"}
        ranking = _rank_wide(named, groups, similarity or "spearman", top, inapplicable, untrained, progress)
        return replace(ranking, notes=(*ranking.notes, *row_notes))
    candidates = _of_samples([_candidate(name, model) for name, model in named.items()])
    if groups is not None:
        candidates = [replace(model, family=str(group)) for model, group in zip(candidates, groups, strict=True)]
    default = "all" if groups is None else "same-family"
    with where:
        ranking = rank_candidates(
            candidates, RankingOptions(**{"compare": default, **chosen}), progress=progress,
            untrained=[_candidate(f"untrained[{place}]", model).matrix() for place, model in enumerate(untrained)],
        )  # fmt: skip
    alone = not untrained and all(model.kl is None and not model.family for model in candidates)
    return replace(ranking, notes=(*ranking.notes, *row_notes, *((CODES_ALONE,) if alone else ())))


@dataclass(frozen=True, eq=False)
class _WideFile:
    """A file or run that was read for `top`."""

    path: Path
    codes: Any  # an array, or sparse


def executed(executor: str, address: str | None, top: int | None = None) -> AbstractContextManager[None]:
    """A block in which models are compared by this executor.

    Raises:
        ValueError: these do not go together; or, once it is entered, no cluster answers.
        ImportError: once it is entered, ray is not installed.
    """
    check_choice("executor", executor, get_args(Executor))
    if executor == "ray" and top is not None:
        raise ValueError("executor 'ray' and top do not go together; without top it shares out pairs of models")
    if executor == "local" and address is not None:
        raise ValueError("address (--address) goes with executor ray (--executor ray)")
    return on_cluster(address or "auto") if executor == "ray" else nullcontext()


def _rank_wide(
    named: Mapping[str, Model],
    groups: Sequence[str] | None,
    similarity: str,
    top: int,
    inapplicable: set[str],
    untrained: Sequence[Model],
    progress: Callable[[int, int], None] | None,
) -> Ranking:
    if inapplicable:
        raise ValueError(
            f"{', '.join(sorted(inapplicable))} and top do not go together: by top all codes that vary count"
        )
    if similarity not in get_args(Correlation):
        raise ValueError(f"similarity must be 'pearson' or 'spearman' with top; got {similarity!r}")
    codes = [_wide(model) for model in named.values()]
    udr = wide_udr(
        codes, correlation=cast(Correlation, similarity), top=top,
        groups=None if groups is None else [str(group) for group in groups], progress=progress,
    )  # fmt: skip
    descriptions = [_family_and_setting(model) for model in named.values()]
    alone = () if untrained or any(family for family, _ in descriptions) else (CODES_ALONE,)
    labels = [family for family, _ in descriptions] if groups is None else [str(group) for group in groups]
    ranking = without_copies(
        Ranking(
            runs=tuple(named), families=tuple(labels), settings=tuple(setting for _, setting in descriptions),
            scores=median_scores(udr.pairs, udr.informative), pairs=udr.pairs,
            latents=tuple(np.arange(number) for number in udr.informative),
            matrices={}, left_out={}, least=udr.least,
            options=RankingOptions(similarity="spearman", compare="all" if groups is None else "same-family"),
            notes=(f"{similarity} correlation {udr.notes[-1]}", *udr.notes[:-1], NOT_ROTATED, *alone),
            digests=tuple(map(content_of, codes)),
            untrained=_untrained_wide(untrained, named, cast(Correlation, similarity), top),
        )
    )  # fmt: skip
    return with_agreeing(ranking)


def _untrained_wide(
    untrained: Sequence[Model], named: Mapping[str, Model], correlation: Correlation, top: int
) -> float | None:
    """The highest score of untrained models among each other."""
    if not untrained:
        return None
    codes, first = [_wide(model) for model in untrained], _wide(next(iter(named.values())))
    codes = different_untrained(codes, len(first) if isinstance(first, np.ndarray) else first.shape[0])
    return float(wide_udr(codes, correlation=correlation, top=top).scores.max())


def _wide(model: Model) -> Any:
    """The codes of a model, sparse if they are stored so."""
    if isinstance(model, _WideFile):
        return model.codes
    if (path := _path_of(model)) is not None:
        path = find_codes(path)
        if not path.is_file():
            raise FileNotFoundError(f"{path}: no such file")
        sparse = read_sparse(path)
        return Representation.load(path, columns=()).codes if sparse is None else sparse
    return model.codes if isinstance(model, Representation) else model


def _named(models: Sequence[Model]) -> dict[str, Model]:
    """Files and runs by their paths, arrays by their place."""
    if isinstance(models, str) or not isinstance(models, Sequence | np.ndarray):
        kind = type(models).__name__
        raise ValueError(f"models must be a study, a list of models or a mapping from names to them; got {kind}")
    named: dict[str, Model] = {str(_path_of(model) or f"model {place}"): model for place, model in enumerate(models)}
    if len(named) < len(models):
        raise ValueError("two of the models are the same file; give each once, or name them by a mapping")
    return named


def _path_of(model: Model) -> Path | None:
    """The path of a file, a run or its folder; None for codes in memory."""
    path = getattr(model, "path", model)
    return Path(path) if isinstance(path, str | Path) else None


def read_model(name: str, path: Path, *, wide: bool = False) -> "Model":
    """A file or run as `rank` takes it, once it has been read without an error; `wide` for its `top`."""
    if wide:
        return _WideFile(path, _wide(path))
    return _candidate(name, path)


def _candidate(name: str, model: Model) -> Candidate:
    if isinstance(model, Candidate):
        return model
    if (path := _path_of(model)) is not None:
        if not path.is_dir() or not is_run(path):
            return _of_file(name, find_codes(path))
        return Candidate.from_representation(name, *_family_and_setting(path), read_codes(path))
    if isinstance(model, Representation):
        if model.weights is not None:
            raise ValueError(f"{name}: a ranking does not support weighted rows")
        return Candidate.from_representation(name, "", "", model)
    return Candidate(name, "", "", as_array(model))


def _of_samples(candidates: Sequence[Candidate]) -> list[Candidate]:
    """Codes alone do not name their samples: take those that most other candidates with as many rows name."""
    alone = [not candidate.samples or candidate.samples.endswith(" rows") for candidate in candidates]
    n_rows = [len(candidate.matrix()) for candidate in candidates] if any(alone) else []
    counts = Counter(
        (rows, candidate.samples) for rows, candidate, no in zip(n_rows, candidates, alone, strict=False) if not no
    )
    usual = {rows: samples for (rows, samples), _ in reversed(counts.most_common())}  # the last of a key stays
    return [
        replace(candidate, samples=usual.get(n_rows[place], f"{n_rows[place]} rows")) if alone[place] else candidate
        for place, candidate in enumerate(candidates)
    ]


def _of_file(name: str, path: Path) -> Candidate:
    """All rows of a file; its fully labelled rows identify the samples."""
    codes, names = load_codes(path, ())
    candidate = Candidate.from_representation(name, "", "", codes)
    if not names:
        return candidate
    try:
        labelled = Representation.load(path)
    except ValueError:  # labels that nothing can be measured against, which a ranking does not need
        return candidate
    samples = Candidate.from_representation(name, "", "", labelled).samples
    return replace(candidate, samples=samples if len(labelled) == len(codes) else f"{samples} of {len(codes)}")


def _family_and_setting(model: Model) -> tuple[str, str]:
    """Family and setting of a run or its folder; empty for anything else."""
    path = _path_of(model)
    if path is None or not is_run(path):
        return "", ""
    columns = run_columns(path)
    return columns["family"], columns["setting"]
