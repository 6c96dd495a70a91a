"""One file for each dataset: `sprites.npz`, a zip that NumPy opens as well, of which only what is asked for is read.

It holds `zoo.json` (see `records`), `factors.npy` (n_rows, n_factors), and `codes/<model>.npy` of each model: uint8
(2, n_codes, n_rows), the lower and the upper bytes of (codes - centre) / scale in float16. Bytes of one kind lie
together because they pack better.
"""

import json
import zipfile
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from unbraid.base.suggest import one_line
from unbraid.base.types import ArrayLike, FloatArray, UInt8Array
from unbraid.data import Representation
from unbraid.files.json_records import check_record
from unbraid.files.tables import UNREADABLE, read_npz
from unbraid.files.whole_files import check_file, check_unpacked
from unbraid.zoo.zoo_json import FORMAT, ZooRecord

RECORD, FACTORS, CODES = "zoo.json", "factors", "codes/"
SUFFIX = ".npz"


@dataclass(frozen=True)
class ZooFile:
    """The models of one dataset; `record` is what `ZooRecord` describes."""

    path: Path
    record: Mapping[str, Any]

    @property
    def dataset(self) -> str:
        return self.record["dataset"]

    def codes(self, model: str) -> Representation:
        """Codes and factors of a model of the dataset, by its name there.

        Raises:
            ValueError: the file is damaged.
        """
        entry = next(entry for entry in self.record["models"] if entry["name"] == model)
        member = f"{CODES}{model}"
        arrays = read_npz(self.path, {FACTORS, member})
        factors, shape = self.record["factors"], (2, entry["n_codes"], self.record["rows"])
        if member not in arrays or arrays[member].shape != shape or arrays[member].dtype != np.uint8:
            raise ValueError(f"{self.path} is damaged: {member} is not uint8 {shape}")
        if FACTORS not in arrays or arrays[FACTORS].shape != (self.record["rows"], len(factors)):
            raise ValueError(f"{self.path} is damaged: {FACTORS} are not ({self.record['rows']}, {len(factors)})")
        codes = unpacked(arrays[member], entry["centre"], entry["scale"])
        if not np.isfinite(codes).all():
            raise ValueError(f"{self.path} is damaged: {member} holds what is not finite")
        return Representation(
            codes,
            arrays[FACTORS],
            names=tuple(factor["name"] for factor in factors),
            kinds=tuple(factor["kind"] for factor in factors),
            sizes=None
            if any(factor["size"] is None for factor in factors)
            else tuple(factor["size"] for factor in factors),
            levels=tuple(tuple(factor["levels"]) for factor in factors),
            periods=tuple(factor["period"] for factor in factors),
        )


def unpacked(planes: UInt8Array, centre: ArrayLike, scale: ArrayLike) -> FloatArray:
    """The codes (n, n_codes) as float32, from bytes (2, n_codes, n) with centre and scale (n_codes,) of each."""
    halves = np.ascontiguousarray(np.moveaxis(planes, 0, -1)).view("<f2")[..., 0].T
    return (np.asarray(centre) + np.asarray(scale) * halves.astype(np.float64)).astype(np.float32)


def open_file(path: Path) -> ZooFile:
    """The file of a dataset, of which only what describes it is read.

    Raises:
        FileNotFoundError: there is no such file.
        ValueError: it is no file of a zoo, damaged, or of another version.
    """
    if not path.is_file():
        check_file(path)
        raise FileNotFoundError(f"{path}: no such file")
    return ZooFile(path, _read_record(path))


def _read_record(path: Path) -> Mapping[str, Any]:
    try:
        with zipfile.ZipFile(path) as archive:
            if RECORD not in archive.namelist():
                raise ValueError(f"it holds no {RECORD}")
            check_unpacked(path, archive.getinfo(RECORD).file_size)
            content = json.loads(archive.read(RECORD).decode("utf-8"))
    except (*UNREADABLE, RecursionError) as error:
        reason = "it is no zip archive" if isinstance(error, zipfile.BadZipFile) else one_line(error)
        raise ValueError(f"{path}: not the file of a zoo ({reason})") from None
    if isinstance(content, dict) and isinstance(version := content.get("format"), int) and version != FORMAT:
        raise ValueError(f"{path}: its format is {version}; this version of unbraid reads {FORMAT}")
    check_record(ZooRecord, content, path)
    names = [model["name"] for model in content["models"]]
    if len({*names}) < len(names):
        raise ValueError(f"{path} is damaged: two models have one name")
    for model in content["models"]:
        of_codes = ("centre", "scale") if model["kl"] is None else ("centre", "scale", "kl")
        if any(len(model[name]) != model["n_codes"] for name in of_codes):
            raise ValueError(f"{path} is damaged: {model['name']} has not one {', '.join(of_codes)} for each code")
    return content
