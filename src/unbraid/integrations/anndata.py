"""AnnData: the embeddings in `obsm`, scored against columns of `obs`; in memory, and in .h5ad files."""

import warnings
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from unbraid.base.arguments import check_entries
from unbraid.base.optional import require
from unbraid.base.suggest import one_line, suggestion
from unbraid.base.types import DataFrame
from unbraid.files.trust import trusting
from unbraid.files.whole_files import check_unpacked
from unbraid.integrations.single_metric import Kinds
from unbraid.metrics import Metric
from unbraid.scoring.card import ScoreCard
from unbraid.scoring.score import Named, choose
from unbraid.scoring.score import score as score_codes
from unbraid.scoring.unwanted import named

__all__ = ["Benchmarker", "score"]

H5AD = ".h5ad"
DEEPEST = 3  # groups in groups that anndata writes for a frame or a matrix
REFERENCE = np.dtype([("length", "<u4"), ("place", "<u8"), ("number", "<u4")])  # of a text, as HDF5 files hold it


def score(
    adata: Any,
    obsm_key: str,
    factors: str | Sequence[str],
    *,
    unwanted: str | Sequence[str] = (),
    kinds: Kinds | None = None,
    metrics: Named | Sequence[Named] | None = None,
    key_added: str = "unbraid",
    **options: Any,
) -> ScoreCard:
    """Score an embedding of the cells against what is known of them.

    Args:
        adata: (n_cells, n_genes) AnnData; `uns` alone is changed.
        obsm_key: of the embedding, such as "X_scVI": (n_cells, n_codes) array, frame or sparse matrix.
        factors: columns of `obs`, such as ["cell_type", "dosage"]: text, categories, booleans, dates or numbers. Cells
            that lack any of them are left out.
        unwanted: columns of `obs` that the embedding should not tell of, such as "batch", as for `unbraid.score`. Cells
            that lack any of these are left out as well.
        kinds: "categorical", "ordinal", "continuous" or "cyclic" per factor, by name or in their order; others are
            guessed, and a note says so.
        metrics: as for `unbraid.score`; default the standard ones.
        key_added: `adata.uns[key_added][obsm_key]` then holds `scores`, a frame with one row per number, and `card`,
            all of it as JSON; both outlive `write_h5ad`.
        **options: as for `unbraid.score`, such as null, confidence or seed; `groups` and `weights` may name columns of
            `obs`, or be arrays (n_cells,).

    Returns:
        ScoreCard.

    Raises:
        ValueError: no such embedding or column, unsound input, or `uns[key_added]` holds something else.
    """
    names, apart = list(named(factors, "factors")), named(unwanted)
    columns = {name: options[name] for name in ("groups", "weights") if isinstance(options.get(name), str)}
    _check_names("adata.obsm", [obsm_key], adata.obsm)
    _check_names("adata.obs", [*names, *apart, *columns.values()], adata.obs)
    if kinds is not None and not isinstance(kinds, Mapping):
        check_entries("kinds", kinds, len(names))
        kinds = dict(zip(names, kinds, strict=True))
    kept = adata.uns.get(key_added, {})
    if not isinstance(kept, Mapping):
        raise ValueError(f"adata.uns[{key_added!r}] holds a {type(kept).__name__}; give another key_added")
    options |= {name: adata.obs[column] for name, column in columns.items()}
    asked = "standard" if metrics is None else metrics
    labels = adata.obs[[*dict.fromkeys([*names, *apart])]]
    card = score_codes(
        adata.obsm[obsm_key], labels, columns=names, unwanted=apart, kinds=kinds, metrics=asked, **options
    )
    added = {"scores": card.to_frame(), "card": card.text("card.json")}
    adata.uns[key_added] = {**kept, obsm_key: added}
    return card


class Benchmarker:
    """Several embeddings of the same cells, scored alike; used as the Benchmarker of scib-metrics is.

    Args:
        adata: (n_cells, n_genes) AnnData.
        factors: columns of `obs` that embeddings should tell of.
        embedding_obsm_keys: of the embeddings.
        unwanted: columns of `obs` that they should not tell of, such as "batch": each has a column `unwanted(batch)`,
            of which lower is better.
        kinds, metrics, key_added: as for `score`.
        **options: as for `score`.

    Example:
        `Benchmarker(adata, ["cell_type"], ["X_pca", "X_scVI"], unwanted="batch").benchmark().get_results()`
    """

    def __init__(
        self,
        adata: Any,
        factors: str | Sequence[str],
        embedding_obsm_keys: str | Sequence[str],
        *,
        unwanted: str | Sequence[str] = (),
        kinds: Kinds | None = None,
        metrics: Named | Sequence[Named] | None = None,
        key_added: str = "unbraid",
        **options: Any,
    ) -> None:
        self._adata, self._factors = adata, factors
        self._embeddings = named(embedding_obsm_keys, "embedding_obsm_keys")
        if not self._embeddings:
            raise ValueError(f"embedding_obsm_keys is empty; adata.obsm has {', '.join(adata.obsm) or 'nothing'}")
        about = {"unwanted": unwanted, "kinds": kinds, "metrics": metrics, "key_added": key_added}
        self._options: dict[str, Any] = {**about, **options}
        self.cards: dict[str, ScoreCard] = {}
        _check_names("adata.obsm", self._embeddings, adata.obsm)
        _check_names("adata.obs", [*named(factors, "factors"), *named(unwanted)], adata.obs)
        choose(trusting("standard" if metrics is None else metrics))  # before the first embedding has taken its time

    def benchmark(self) -> "Benchmarker":
        """Score every embedding: `cards` holds the cards by embedding.

        Raises:
            ValueError: as `score` does; the message names the embedding.
        """
        for key in self._embeddings:
            try:
                self.cards[key] = score(self._adata, key, self._factors, **self._options)
            except ValueError as error:
                raise ValueError(f"embedding {key!r}: {error}") from error
        return self

    def get_results(self) -> DataFrame:
        """A frame with a row for each embedding and a column for each metric, NaN where one was skipped.

        A metric that was skipped for every embedding has no column. Columns of unwanted factors are called
        `unwanted(batch)`. `attrs["lower_is_better"]` lists the columns of which that holds.

        Raises:
            ValueError: nothing was scored yet.
        """
        import pandas

        if not self.cards:
            raise ValueError("nothing was scored yet: call benchmark() first")
        rows = {key: {name: each.headline for name, each in card.scored.items()} for key, card in self.cards.items()}
        rows_of: dict[str, Metric] = {
            name: each.metric for card in self.cards.values() for name, each in card.scored.items()
        }
        results = pandas.DataFrame.from_dict(rows, orient="index").rename_axis("Embedding")
        results.attrs["lower_is_better"] = [name for name, metric in rows_of.items() if not metric.higher_is_better]
        return results


def read_h5ad(path: Path, obsm_key: str | None) -> tuple[str, Any, DataFrame]:
    """Key and matrix of an embedding in a .h5ad file, and its `obs`; nothing else of the file is read.

    Args:
        path: of the file.
        obsm_key: of the embedding; None where there is one alone.

    Raises:
        FileNotFoundError: there is no such file.
        ImportError: anndata is not installed.
        ValueError: the file is damaged, takes data from other files, or has no such embedding; the message names it.
    """
    if not path.is_file():
        raise FileNotFoundError(f"{path}: no such file")
    read_elem = require("anndata.io", "anndata", "reading .h5ad").read_elem
    import h5py

    with warnings.catch_warnings(action="ignore"):  # how old the file is
        try:
            with h5py.File(path, "r") as file:
                return _read(path, file, obsm_key, read_elem)
        except Exception as error:  # h5py and anndata pass on whatever the libraries below them raise
            if str(error).startswith(f"{path}: "):
                raise
            raise ValueError(f"{path}: not a readable .h5ad file ({one_line(error)})") from error


def _read(path: Path, file: Any, obsm_key: str | None, read_elem: Callable[[Any], Any]) -> tuple[str, Any, DataFrame]:
    from scipy import sparse

    there = list(file["obsm"])
    if obsm_key is None and len(there) != 1:
        raise ValueError(f"{path}: name the codes (--codes); obsm holds {', '.join(there) or 'nothing'}")
    key = there[0] if obsm_key is None else obsm_key
    _check_names(f"{path}: obsm", [key], there)
    own = _own(file, "obsm")
    check_unpacked(path, _n_bytes(file, "obs") + _n_bytes(own, key))
    obs, codes = read_elem(file["obs"]), read_elem(own[key])
    if sparse.issparse(codes):
        codes.check_format(full_check=True)
    if codes.shape[0] != len(obs):
        raise ValueError(f"obsm/{key} has {codes.shape[0]:,} rows and obs {len(obs):,}")
    return key, codes, obs


def _own(group: Any, name: str) -> Any:
    """A part that lies in the file itself."""
    import h5py

    part = group[name] if isinstance(group.get(name, getlink=True), h5py.HardLink) else None
    if part is None or (isinstance(part, h5py.Dataset) and (part.external or part.is_virtual)):
        raise ValueError(f"{name!r} is a link")
    return part


def _n_bytes(group: Any, name: str, depth: int = 0) -> int:
    """What a part of a group takes in memory."""
    part = _own(group, name)
    if hasattr(part, "nbytes"):
        return part.nbytes + _n_letters(part)
    if depth == DEEPEST:
        raise ValueError(f"{part.name} holds groups in groups")
    return sum(_n_bytes(part, each, depth + 1) for each in part)


def _n_letters(part: Any) -> int:
    """Bytes of the texts of a dataset, as the file declares them; 0 where it has none, or they lie in chunks.

    libhdf5 makes room for whatever length stands there before it looks whether the text is as long.
    """
    import h5py

    text, place = h5py.check_string_dtype(part.dtype), part.id.get_offset()
    if (
        text is None
        or text.length is not None
        or place is None
        or part.id.get_storage_size() != REFERENCE.itemsize * part.size
    ):
        return 0
    path = Path(part.file.filename)
    count = min(part.size, path.stat().st_size // REFERENCE.itemsize)
    return int(np.fromfile(path, REFERENCE, count, offset=place)["length"].sum(dtype=np.int64))


def _check_names(where: str, names: Sequence[str], known: Any) -> None:
    for name in names:
        if name not in known:
            raise ValueError(f"{where} has no {name!r}; {suggestion(str(name), [*known])}")
