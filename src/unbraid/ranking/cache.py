"""A ranking with its similarity matrices as one file, and the saved ranking of a study."""

import errno
import hashlib
import json
import os
import time
from collections.abc import Callable, Collection, Sequence
from contextlib import ExitStack
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

import numpy as np

from unbraid.base.types import FloatArray
from unbraid.files.checksum import add_checksum, check_file
from unbraid.files.locks import locked
from unbraid.files.marks import ReadOnce
from unbraid.files.tables import UNREADABLE
from unbraid.files.whole_files import atomic_write
from unbraid.metrics.udr import Pairs
from unbraid.ranking.candidate import Candidate
from unbraid.ranking.rank_candidates import rank_candidates
from unbraid.ranking.ranking import Ranking, RankingOptions

FORMAT = 1
MADE = 9  # raised when rankings of the same codes change, their notes included: saved ones are computed again
FOLDER, LOCK = "udr", ".lock"
PAIR_ARRAYS = "values", "penalties", "largest", "converged"  # of all pairs
READ_ONLY = (errno.EACCES, errno.EPERM, errno.EROFS)
SAVED_EVERY = 60.0  # seconds


def ranking_path(folder: Path, options: RankingOptions) -> Path:
    """`DIR/udr/lasso.npz` for comparisons within settings, `DIR/udr/lasso-all.npz` for others."""
    other = "" if options.compare == "same-hyperparameters" else f"-{options.compare}"
    return folder / FOLDER / f"{options.similarity}{other}.npz"


def rank_and_keep(
    folder: Path,
    candidates: Sequence[Candidate],
    options: RankingOptions,
    left_out: dict[str, str],
    progress: Callable[[int, int], None] | None = None,
    untrained: Sequence[FloatArray] = (),
    files: ReadOnce | None = None,
) -> Ranking:
    """The ranking of these models: the one saved in the folder if it is of the same codes, else computed and saved.

    Pairs of models that were compared before are not compared again, even after an interruption: results are saved
    every minute in a file beside it. Another process that ranks in the folder is waited for. If the folder is not
    writable, nothing is saved, and a note says so. `files`: what was read before.
    """
    path, source = ranking_path(folder, options), _fingerprint(candidates, options, untrained)
    files = ReadOnce() if files is None else files

    def saved_ranking() -> Ranking | None:
        if not path.is_file() or _described(path).get("source") != source:
            return None
        ranking, runs = files(read_shown, path), {model.run for model in candidates}
        reasons = {run: reason for run, reason in ranking.left_out.items() if run in runs}
        return replace(ranking, left_out=left_out | reasons)

    if (ranking := saved_ranking()) is not None:
        return ranking
    with ExitStack() as stack:
        keep = _claimed(path.parent, stack)
        if (ranking := saved_ranking()) is not None:
            return ranking
        return _made(path, candidates, options, left_out, source, progress, untrained, keep=keep)


def _claimed(folder: Path, stack: ExitStack) -> bool:
    """Whether the folder is writable; if so it is locked until the stack is closed."""
    try:
        folder.mkdir(exist_ok=True)
        stack.enter_context(locked(folder / LOCK, wait="always"))
    except OSError as error:
        if error.errno not in READ_ONLY:
            raise
        return False
    return os.access(folder, os.W_OK)


def _made(
    path: Path,
    candidates: Sequence[Candidate],
    options: RankingOptions,
    left_out: dict[str, str],
    source: str,
    progress: Callable[[int, int], None] | None,
    untrained: Sequence[FloatArray],
    *,
    keep: bool,
) -> Ranking:
    begun = path.with_name(f"{path.name}.begun")
    known = next((read_ranking(file) for file in (begun, path) if file.is_file()), None)
    due = time.monotonic() + SAVED_EVERY

    def save(part: Ranking) -> None:
        nonlocal due
        if keep and (started := time.monotonic()) >= due:
            write_ranking(begun, part)
            due = time.monotonic() + max(SAVED_EVERY, 20 * (time.monotonic() - started))

    ranking = rank_candidates(
        candidates, options, left_out=left_out, untrained=untrained, known=known, save=save, progress=progress
    )
    if not keep:
        note = f"{path.parent} cannot be written: this ranking is not kept there, and is computed anew each time"
        return replace(ranking, notes=(*ranking.notes, note))
    write_ranking(path, ranking, source)
    begun.unlink(missing_ok=True)
    return ranking


def write_ranking(path: Path, ranking: Ranking, source: str = "") -> None:
    """Write the .npz file whole, or not at all.

    It holds `runs`, `families`, `settings`, `scores`, `pairs` as the ranking does; `informative` and `latents`, the
    informative latents of all runs one after the other; `compared` (n_pairs, 2) and `matrices`, the entries of the
    similarity matrices of these pairs one after the other, row by row; `values`, `penalties`, `largest` and
    `converged` of all pairs known, and the `digests` of the runs' codes; `described`, JSON.
    """
    described = {
        "format": FORMAT,
        "source": source,
        "options": asdict(ranking.options),
        "left_out": dict(ranking.left_out),
        "notes": list(ranking.notes),
        "doubted": list(ranking.doubted),
        "silent": list(ranking.silent),
        "untrained": ranking.untrained,
        "rotated": {run: list(pair) for run, pair in ranking.rotated.items()},
    }
    compared = np.array(list(ranking.matrices), dtype=np.int32).reshape(-1, 2)
    entries = [matrix.ravel() for matrix in ranking.matrices.values()]
    with atomic_write(path) as temporary:
        _save(
            temporary,
            runs=np.array(ranking.runs),
            families=np.array(ranking.families),
            settings=np.array(ranking.settings),
            scores=ranking.scores,
            pairs=ranking.pairs,
            informative=ranking.informative,
            latents=np.concatenate(ranking.latents),
            digests=np.array(ranking.digests),
            **(
                {}
                if ranking.known_pairs is None
                else {name: getattr(ranking.known_pairs, name) for name in PAIR_ARRAYS}
            ),
            compared=compared,
            matrices=np.concatenate([np.empty(0, dtype=np.float32), *entries]),
            described=np.array(json.dumps(described)),
        )


def _save(path: Path, **arrays: Any) -> None:
    with path.open("wb") as file:
        np.savez_compressed(file, allow_pickle=False, **arrays)
    add_checksum(path)


def read_shown(path: str | Path) -> Ranking:
    """`read_ranking` without `known_pairs`, which are most of the file and needed only for further comparisons."""
    return read_ranking(path, without=PAIR_ARRAYS)


def read_ranking(path: str | Path, *, without: Collection[str] = ()) -> Ranking:
    """Read a file of `write_ranking`, except these arrays.

    Raises:
        FileNotFoundError: there is no such file.
        ValueError: it is damaged, or of another version.
    """
    path = Path(path)
    described = _described(path)
    if described.get("format") != FORMAT:
        raise ValueError(
            f"{path}: its format is {described.get('format')}; this version of unbraid reads {FORMAT}. "
            "Remove it to rank again"
        )
    arrays = _arrays(path, without=without)
    try:
        return _ranking(described, arrays)
    except (KeyError, TypeError, ValueError, AttributeError, IndexError) as error:
        raise ValueError(f"{path} is damaged ({error}); remove it to rank again") from error


def _ranking(described: dict[str, Any], arrays: dict[str, Any]) -> Ranking:
    informative = arrays["informative"].tolist()
    matrices = _unpacked(arrays["compared"].tolist(), arrays["matrices"], informative)
    known = arrays.keys() >= set(PAIR_ARRAYS)
    n_runs = len(arrays["runs"])
    for name in PAIR_ARRAYS if known else ():
        if arrays[name].shape != (n_runs, n_runs) or arrays[name].dtype.kind not in "bf":
            raise ValueError(
                f"{name} must be ({n_runs}, {n_runs}) numbers; got {arrays[name].dtype} {arrays[name].shape}"
            )
    if len(arrays["digests"]) != n_runs:
        raise ValueError(f"digests must be of {n_runs} runs; got {len(arrays['digests'])}")
    return Ranking(
        runs=tuple(arrays["runs"].tolist()),
        families=tuple(arrays["families"].tolist()),
        settings=tuple(arrays["settings"].tolist()),
        scores=arrays["scores"],
        latents=tuple(np.split(arrays["latents"], np.cumsum(informative)[:-1])),
        pairs=arrays["pairs"],
        matrices=matrices,
        left_out=described["left_out"],
        options=RankingOptions(**{"informative": "kl", **described["options"]}),  # rankings of 0.1 do not say so
        notes=tuple(described["notes"]),
        doubted=tuple(described.get("doubted", ())),
        silent=tuple(described.get("silent", ())),
        untrained=described.get("untrained"),
        rotated={run: (float(score), float(bound)) for run, (score, bound) in described.get("rotated", {}).items()},
        known_pairs=Pairs(**{name: arrays[name] for name in PAIR_ARRAYS}, matrices=matrices) if known else None,
        digests=tuple(arrays["digests"].tolist()),
    )


def _unpacked(compared: list[list[int]], entries: Any, informative: list[int]) -> dict[tuple[int, int], Any]:
    matrices, start = {}, 0
    for i, j in compared:
        stop = start + informative[i] * informative[j]
        matrices[i, j] = entries[start:stop].reshape(informative[i], informative[j])
        start = stop
    return matrices


def _described(path: Path) -> dict[str, Any]:
    try:
        described = json.loads(str(_arrays(path, ["described"])["described"]))
        if not isinstance(described, dict):
            raise ValueError("its description is no object")
    except (ValueError, RecursionError) as error:
        raise (
            error if str(path) in str(error) else ValueError(f"{path} is damaged ({error}); remove it to rank again")
        ) from None
    return described


def _arrays(path: Path, names: Sequence[str] | None = None, without: Collection[str] = ()) -> dict[str, Any]:
    if not path.is_file():
        raise FileNotFoundError(f"{path}: no such file")
    try:
        if names is None:
            check_file(path)
        with path.open("rb") as file, np.load(file, allow_pickle=False) as archive:
            return {name: archive[name] for name in (names or archive.files) if name not in without}
    except (*UNREADABLE, AttributeError) as error:
        raise ValueError(f"{path} is damaged ({error}); remove it to rank again") from error


def _fingerprint(candidates: Sequence[Candidate], options: RankingOptions, untrained: Sequence[FloatArray]) -> str:
    digest = hashlib.sha256(json.dumps([MADE, asdict(options)], sort_keys=True).encode())
    for model in candidates:
        digest.update(json.dumps([model.run, model.family, model.setting, model.samples, model.digest]).encode())
        for nats in (model.kl, model.signal):
            digest.update(b"" if nats is None else nats.tobytes())
    for codes in untrained:
        digest.update(np.ascontiguousarray(codes).tobytes())
    return digest.hexdigest()
