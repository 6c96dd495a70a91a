"""What a figure is drawn from: a file of codes, the folder of a run, or the folder of a study."""

from collections.abc import Collection
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any, Literal

from unbraid.base.optional import require
from unbraid.base.types import DataFrame
from unbraid.data import Representation
from unbraid.data.representation import example_path
from unbraid.figures.figure_choices import Chosen
from unbraid.files.run_files import ADDED_CODES, CODES, CONFIG
from unbraid.runs.folder import check_there, read_codes
from unbraid.runs.foreign_models import check_not_fitted
from unbraid.scoring.setting_names import with_brief_settings
from unbraid.show.paper import COLUMN

Kind = Literal["codes", "run", "study"]
STUDY_FILES = ("study.yaml", "runs", "added")
KIND_IN_WORDS = {"codes": "a file of codes", "run": "the folder of a run", "study": "the folder of a study"}


@dataclass(frozen=True)
class Source:
    """One path, opened as far as a figure asks for it."""

    path: Path
    kind: Kind
    trust: Collection[str] = ()  # names of the user's own networks that the run may have
    chosen: Chosen = Chosen(COLUMN)

    @cached_property
    def representation(self) -> Representation:
        """Codes and factors, of a file or of a run."""
        return read_codes(self.path)

    @cached_property
    def run(self) -> Any:
        """The trained model, its networks left aside until they are used."""
        require("torch", "train", "this figure")
        from unbraid.runs.run import open_run

        return open_run(self.path, trust=self.trust)

    @cached_property
    def snapshot(self) -> Any:
        """The study, which is of one dataset, as its folder holds it."""
        from unbraid.studies.study import open_study

        with open_study(self.path, trust=self.trust) as study:
            return study.snapshot()

    @cached_property
    def results(self) -> DataFrame:
        """One row per run of the study, a pandas DataFrame.

        Raises:
            ValueError: there is none yet.
        """
        from unbraid.studies.study_table import results

        frame = results(self.snapshot)
        if not len(frame):
            raise ValueError(f"{self.path}: the study has no results yet")
        return with_brief_settings(frame)

    @property
    def snapshots(self) -> list[Any]:
        """The study alone, or nothing where it is none."""
        return [self.snapshot] if self.kind == "study" else []

    @property
    def description(self) -> str:
        """What the path is, as an error says it."""
        return "not a folder" if self.kind == "codes" else KIND_IN_WORDS[self.kind]


def open_source(path: str | Path | Representation | None, trust: Collection[str] = ()) -> Source:
    """Find out what a path holds; without one, the shipped example of codes.

    Args:
        path: file or folder; or codes in memory.
        trust: names of your own networks that a run may have; see `unbraid.load_run`.

    Raises:
        FileNotFoundError: there is no such file or folder.
        ValueError: the folder is neither that of a run nor that of a study, such as that of `unbraid fit`.
    """
    if path is None:
        return Source(example_path(), "codes")
    if isinstance(path, Representation):
        if path.weights is not None:
            raise ValueError("figures do not support weighted rows; draw the codes without them")
        source = Source(Path("codes"), "codes")
        source.__dict__["representation"] = path
        return source
    path = Path(path)
    if path.is_dir():
        check_not_fitted(path)
        if (path / ADDED_CODES).is_file():
            return Source(path / ADDED_CODES, "codes")
        if (path / CONFIG).is_file() or (path / CODES).is_file():
            return Source(path, "run", trust)
        if any((path / name).exists() for name in STUDY_FILES):
            return Source(path, "study", trust)
        raise ValueError(
            f"{path}: neither the folder of a run ({CONFIG}) nor that of a study ({STUDY_FILES[0]}); "
            "of a folder of runs or of files of codes, give one of these"
        )
    check_there([path])
    return Source(path, "codes")
