"""Write the file of a dataset of the zoo, as `unbraid.zoo.zoo_files` reads it."""

import io
import json
import zipfile
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

import numpy as np

from unbraid.base.types import ArrayLike, FloatArray, UInt8Array
from unbraid.files.json_records import check_record
from unbraid.files.whole_files import atomic_write
from unbraid.zoo.zoo_files import CODES, FACTORS, RECORD
from unbraid.zoo.zoo_json import ZooRecord

EPOCH = (1980, 1, 1, 0, 0, 0)  # the time of every part, so that equal content makes equal files


def packed(codes: ArrayLike) -> tuple[UInt8Array, FloatArray, FloatArray]:
    """Codes (n, n_codes) as bytes (2, n_codes, n), with centre and scale (n_codes,) of each.

    Around its mean and divided by its largest distance from it, a code of any offset and range keeps 11 bits.

    Raises:
        ValueError: codes are not finite.
    """
    exact = np.asarray(codes, dtype=np.float64)
    if not np.isfinite(exact).all():
        raise ValueError("codes that are not finite cannot be kept")
    centre = exact.mean(axis=0)
    reach = np.abs(exact - centre).max(axis=0)
    scale = np.where(reach > 0, reach, 1.0)
    halves = np.ascontiguousarray(((exact - centre) / scale).astype("<f2").T)
    return np.moveaxis(halves.view(np.uint8).reshape(*halves.shape, 2), -1, 0).copy(), centre, scale


def write(path: Path, record: Mapping[str, Any], factors: ArrayLike, codes: Iterable[tuple[str, UInt8Array]]) -> None:
    """Write the file of a dataset; whole or not at all."""
    check_record(ZooRecord, record, path)
    with atomic_write(path) as temporary, zipfile.ZipFile(temporary, "w") as archive:
        _add(archive, RECORD, json.dumps(record, allow_nan=False).encode())
        _add(archive, f"{FACTORS}.npy", _npy(np.asarray(factors)))
        for model, planes in codes:
            _add(archive, f"{CODES}{model}.npy", _npy(planes))


def _add(archive: zipfile.ZipFile, name: str, content: bytes) -> None:
    archive.writestr(zipfile.ZipInfo(name, EPOCH), content, zipfile.ZIP_DEFLATED, compresslevel=9)


def _npy(array: Any) -> bytes:
    buffer = io.BytesIO()
    np.save(buffer, array, allow_pickle=False)
    return buffer.getvalue()
