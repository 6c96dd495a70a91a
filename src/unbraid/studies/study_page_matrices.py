"""The square tables of a study's page: correlations of columns, and the similarity of models and of their latents."""

import base64
from collections.abc import Mapping
from dataclasses import asdict
from typing import Any

import numpy as np

from unbraid.base.printable import printable
from unbraid.base.types import DataFrame, FloatArray, UInt8Array
from unbraid.ranking.cache import FOLDER, ranking_path, read_shown
from unbraid.ranking.ranking import Ranking
from unbraid.ranking.suitability import suitability
from unbraid.ranking.verdicts import study_verdict
from unbraid.scoring.agreement import EVERYTHING, agreement
from unbraid.scoring.result_columns import headline_columns, higher_is_better
from unbraid.scoring.setting_names import brief_settings
from unbraid.studies.snapshot import StudySnapshot
from unbraid.studies.study_page_columns import settings
from unbraid.studies.study_ranking import ranking_options

LEVELS = 250  # of a similarity from 0 to 1 in one byte
MISSING = 255
LARGEST = 6_000_000  # bytes of the latents' similarities; beyond it only those within settings stay


def correlations(frame: DataFrame) -> list[dict[str, Any]]:
    """Spearman's rank correlations of headline columns, for all runs and within each family that has any."""
    measured = agreement(frame)
    tables = []
    for group in measured.groups:
        names, rho, p = measured.matrix(group)
        if len(names) < 2:
            continue
        n = np.zeros(rho.shape, dtype=int)
        for pair in measured.correlations:
            if pair.group == group:
                place = names.index(pair.first), names.index(pair.second)
                n[place] = n[place[::-1]] = pair.n
        tables.append(
            {
                "title": "all families" if group == EVERYTHING else group,
                "names": names,
                "rho": _listed(rho),
                "p": _listed(p),
                "n": n.tolist(),
            }
        )
    return tables


def verdict(snapshot: StudySnapshot, frame: DataFrame) -> dict[str, list[Any]]:
    """The verdict of the YAML's ranking on the best model, in lines, and the indices of runs that cannot be it.

    Empty if the study is not ranked.
    """
    path = ranking_path(snapshot.folder, ranking_options(snapshot.config))
    if "udr.score" not in frame.columns or not path.is_file():
        return {"verdict": [], "not_best": []}
    ranking = snapshot.files(read_shown, path)
    places = {run: place for place, run in enumerate(frame["run"].tolist())}
    names = brief_settings(_keys(ranking))
    return {
        "verdict": [printable(line) for line in study_verdict(ranking, names)],
        "not_best": [places[run] for run in ranking.not_best() if run in places],
    }


def rankings(snapshot: StudySnapshot, frame: DataFrame) -> list[dict[str, Any]]:
    """Each ranking in the study's folder: models by setting and seed, similarities of models and of their latents."""
    places = {run: place for place, run in enumerate(frame["run"].tolist())}
    order = {(setting["family"], setting["setting"]): place for place, setting in enumerate(settings(frame))}
    entries = []
    for path in sorted((snapshot.folder / FOLDER).glob("*.npz")):
        ranking = snapshot.files(read_shown, path)
        keys = [(order.get(key, len(order)), place) for place, key in enumerate(_keys(ranking))]
        models = [place for _, place in sorted(keys) if ranking.runs[place] in places]
        if len(models) > 1:
            entries.append(_ranking(ranking, models, places, frame))
    return entries


def _ranking(ranking: Ranking, models: list[int], places: Mapping[str, int], frame: DataFrame) -> dict[str, Any]:
    position = {model: place for place, model in enumerate(models)}
    matrices = {pair: matrix for pair, matrix in ranking.matrices.items() if position.keys() >= set(pair)}
    within = sum(matrix.size for matrix in matrices.values()) > LARGEST
    if within:
        keys = _keys(ranking)
        matrices = {(i, j): matrix for (i, j), matrix in matrices.items() if keys[i] == keys[j]}
    entries = np.concatenate([np.empty(0), *[matrix.ravel() for matrix in matrices.values()]])
    compared = np.array([(position[i], position[j]) for i, j in matrices], dtype="<u2").reshape(-1, 2)
    options = ranking.options
    return {
        "title": f"{options.similarity}, {options.compare.replace('-', ' ')}",
        "runs": [places[ranking.runs[model]] for model in models],
        "pairs": _bytes(ranking.pairs[np.ix_(models, models)]),
        "latents": [ranking.latents[model].tolist() for model in models],
        "compared": base64.b64encode(compared.tobytes()).decode(),
        "matrices": _bytes(np.abs(entries)),
        "within": within,
        "notes": list(ranking.notes),
        "suitability": _suitability(frame, ranking),
    }


def _suitability(frame: DataFrame, ranking: Ranking) -> list[dict[str, Any]]:
    """Whether UDR suits the families, judged by the study's first metric; empty without metrics."""
    metric = next(iter(headline_columns(frame)), None)
    if metric is None:
        return []
    checked = suitability(frame, ranking, metric, higher_is_better=higher_is_better(metric) is not False)
    return [asdict(check) for check in checked]


def _keys(ranking: Ranking) -> list[tuple[str, str]]:
    return list(zip(ranking.families, ranking.settings, strict=True))


def _bytes(values: FloatArray) -> str:
    """Similarities as base64 of one byte each, 0 .. 250 for 0 .. 1, and 255 where there is none."""
    known = np.isfinite(values)
    levels: UInt8Array = np.full(values.shape, MISSING, dtype=np.uint8)
    levels[known] = (np.clip(values[known], 0, 1) * LEVELS + 0.5).astype(np.uint8)
    return base64.b64encode(levels.tobytes()).decode()


def _listed(matrix: FloatArray) -> list[list[float | None]]:
    return [[round(float(value), 6) if np.isfinite(value) else None for value in row] for row in matrix]
