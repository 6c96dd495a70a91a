"""Embeddings of .h5ad files with the `obs` of their cells."""

import warnings
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from unbraid.base.optional import require
from unbraid.base.suggest import one_line, suggestion
from unbraid.base.types import DataFrame
from unbraid.files.whole_files import check_unpacked

H5AD = ".h5ad"
DEEPEST = 3  # groups in groups that anndata writes for a frame or a matrix
REFERENCE = np.dtype([("length", "<u4"), ("place", "<u8"), ("number", "<u4")])  # of a text, as HDF5 files hold it


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

    keys = list(file["obsm"])
    if obsm_key is None and len(keys) != 1:
        raise ValueError(f"{path}: name the codes (--codes); obsm holds {', '.join(keys) or 'nothing'}")
    key = keys[0] if obsm_key is None else obsm_key
    check_names(f"{path}: obsm", [key], keys)
    obsm = _hard_linked(file, "obsm")
    check_unpacked(path, _n_bytes(file, "obs") + _n_bytes(obsm, key))
    obs, codes = read_elem(file["obs"]), read_elem(obsm[key])
    if sparse.issparse(codes):
        codes.check_format(full_check=True)
    if codes.shape[0] != len(obs):
        raise ValueError(f"obsm/{key} has {codes.shape[0]:,} rows and obs {len(obs):,}")
    return key, codes, obs


def _hard_linked(group: Any, name: str) -> Any:
    """A part that lies in the file itself."""
    import h5py

    part = group[name] if isinstance(group.get(name, getlink=True), h5py.HardLink) else None
    if part is None or (isinstance(part, h5py.Dataset) and (part.external or part.is_virtual)):
        raise ValueError(f"{name!r} is a link")
    return part


def _n_bytes(group: Any, name: str, depth: int = 0) -> int:
    """What a part of a group takes in memory."""
    part = _hard_linked(group, name)
    if hasattr(part, "nbytes"):
        return part.nbytes + _n_letters(part)
    if depth == DEEPEST:
        raise ValueError(f"{part.name} holds groups in groups")
    return sum(_n_bytes(part, member, depth + 1) for member in part)


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


def check_names(where: str, names: Sequence[str], known: Any) -> None:
    """Raises ValueError for the first name that `known` lacks."""
    for name in names:
        if name not in known:
            raise ValueError(f"{where} has no {name!r}; {suggestion(str(name), [*known])}")
