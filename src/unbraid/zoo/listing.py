"""What models there are, and the codes of each."""

import os
from pathlib import Path
from typing import Any

from unbraid.base.suggest import suggestion
from unbraid.base.types import DataFrame
from unbraid.data import Representation
from unbraid.zoo.zoo_files import SUFFIX, ZooFile, open_file

PACKAGED = Path(__file__).parent / "packaged"
VARIABLE = "UNBRAID_ZOO"


def folder_of(folder: str | Path | None = None) -> Path:
    """The folder given, or that of the environment variable UNBRAID_ZOO, or the one inside the package.

    Raises:
        FileNotFoundError: there is no such folder.
    """
    name = folder if folder is not None else os.environ.get(VARIABLE)
    path = Path(name) if name else PACKAGED
    if not path.is_dir():
        where = f" ({VARIABLE})" if folder is None else ""
        raise FileNotFoundError(f"{path}{where}: no such folder; give the one that the archive of the zoo unpacks to")
    return path


def open_zoo(folder: str | Path | None = None) -> list[ZooFile]:
    """The files of a zoo, one for each dataset, by name.

    Raises:
        FileNotFoundError: there is no such folder, or no file in it.
        ValueError: a file in it is none of a zoo, or two are of one dataset.
    """
    place = folder_of(folder)
    files = [open_file(path) for path in sorted(place.glob(f"*{SUFFIX}"))]
    if not files:
        raise FileNotFoundError(f"{place}: not the folder of a zoo; there is no {SUFFIX} file in it")
    names = [file.dataset for file in files]
    for file in files:
        if names.count(file.dataset) > 1:
            raise ValueError(f"{place}: two files are of {file.dataset}; a zoo has one file for each dataset")
    return files


def list_models(folder: str | Path | None = None) -> DataFrame:
    """Every model of a zoo, one row each, as a pandas DataFrame.

    Args:
        folder: of the zoo. Default: that of the environment variable UNBRAID_ZOO, or else the 24 models inside the
            package.

    Returns: By name, such as "sprites/beta_tcvae-b6-s0", which `load` takes: dataset, family, setting, seed, steps,
        study, run and commit of the training; rows and n_codes; informative, how many codes tell of their sample; its
        `defects`, as a tuple of texts; kl, (n_codes,) nats as a tuple, None without a posterior; "mig" and so on,
        scores on the rows of the zoo; "study.mig.score" and so on, those that the study has of codes in full precision;
        and "hyper.beta" and so on. NaN where a model has no such number.

    Raises:
        FileNotFoundError: there is no such folder, or no zoo in it.
        ValueError: a file in it is damaged.
    """
    import pandas

    rows = [_row(file, model) for file in open_zoo(folder) for model in file.record["models"]]
    return pandas.DataFrame(rows).set_index("name")


def _row(file: ZooFile, model: dict[str, Any]) -> dict[str, Any]:
    plain = ("family", "setting", "seed", "steps", "study", "run", "commit", "n_codes", "informative")
    return {
        "name": f"{file.dataset}/{model['name']}",
        "dataset": file.dataset,
        **{name: model[name] for name in plain},
        "rows": file.record["rows"],
        "defects": tuple(model["defects"]),
        "kl": None if model["kl"] is None else tuple(model["kl"]),
        **model["scores"],
        **{f"study.{name}": value for name, value in model["study_scores"].items()},
        **{f"hyper.{name}": value for name, value in model["hyperparameters"].items()},
    }


def load(name: str, folder: str | Path | None = None) -> Representation:
    """Codes and factors of a model of a zoo, ready for `unbraid.score`.

    Args:
        name: as `list` has it, such as "sprites/beta_tcvae-b6-s0".
        folder: of the zoo, as for `list`.

    Returns:
        Representation: codes (n_samples, n_codes), float32 that were kept in float16, and the factors
        (n_samples, n_factors) of the same rows. It has no log-variances.

    Raises:
        FileNotFoundError: there is no such folder, or no zoo in it.
        ValueError: there is no such model, or its file is damaged.
    """
    files = open_zoo(folder)
    dataset, _, model = name.partition("/")
    for file in files:
        if file.dataset == dataset and any(entry["name"] == model for entry in file.record["models"]):
            return file.codes(model)
    known = [f"{file.dataset}/{entry['name']}" for file in files for entry in file.record["models"]]
    where = "" if folder_of(folder) != PACKAGED else " (the package holds a few; UNBRAID_ZOO names the folder of all)"
    raise ValueError(f"no model {name!r} in the zoo{where}; {suggestion(name, known)}")
