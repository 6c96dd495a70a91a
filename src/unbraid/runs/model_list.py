"""Several models at once: a broken one does not stop the others."""

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TypeVar

from unbraid.base.errors import ModelsFailed
from unbraid.data import READABLE
from unbraid.files.run_files import WORKING
from unbraid.files.trust import Untrusted
from unbraid.files.whole_files import disk_is_full
from unbraid.runs.folder import check_there
from unbraid.runs.foreign_models import (
    CODES,
    CONFIGS,
    LABELS,
    check_not_fitted,
    foreign_files,
    is_run,
    models_below,
    no_models,
)

Result = TypeVar("Result")


class Models:
    """Paths of models, and the reasons for those that failed.

    Args:
        files: files of codes, folders of models, or folders of either.
        codes: pattern of the names of files of codes in the folders of models.
        needed: least number of models that must not fail.
        strict: raise the first error instead of collecting errors.

    Raises:
        FileNotFoundError: there is no such file, or no model in a folder.
        ValueError: a file is given twice, or a folder is that of `unbraid fit`.
    """

    def __init__(
        self, files: Sequence[Path], codes: str | None = None, *, needed: int = 1, strict: bool = False
    ) -> None:
        check_there(files)
        broken: dict[str, Exception] | None = None if strict else {}
        self.runs: set[Path] = set()  # the paths that are folders of runs of `unbraid.train`
        self.paths = [
            model for path in files for model in (self._inside(path, codes, broken) if path.is_dir() else [path])
        ]
        self.failed = {path: _one_line(error) for path, error in (broken or {}).items()}
        self.needed = needed
        self.strict = strict
        if len(set(self.paths)) < len(self.paths):
            raise ValueError("one of the files is given twice")

    def __len__(self) -> int:
        return len(self.paths) + len(self.failed)

    @property
    def failures(self) -> list[dict[str, str]]:
        """Path and reason of each model that failed, for JSON."""
        return [{"path": path, "reason": reason} for path, reason in self.failed.items()]

    def map(self, work: Callable[[Path], Result]) -> dict[Path, Result]:
        """Apply `work` to each model; those for which it raises an error have failed.

        Raises:
            ModelsFailed: too few models are left. For a single model, the error that `work` raised.
        """
        results: dict[Path, Result] = {}
        alone = len(self) == 1
        for path in self.paths:
            try:
                results[path] = work(path)
            except (ValueError, OSError) as error:
                if alone or self.strict or isinstance(error, Untrusted) or disk_is_full(error):
                    raise
                self.failed[str(path)] = _one_line(error)
        self.paths = list(results)
        if self.failed and len(results) < self.needed:
            raise ModelsFailed(self.failed, every=True)
        return results

    def check(self) -> None:
        """Raises ModelsFailed if some of the models failed; called after the others have been used."""
        if self.failed:
            raise ModelsFailed(self.failed, every=False)

    def _inside(self, path: Path, codes: str | None, failed: dict[str, Exception] | None) -> list[Path]:
        if is_run(path):
            self.runs.add(path)
            return [path]
        check_not_fitted(path)
        labels = foreign_files(path, LABELS)
        files = sorted(file for file in path.iterdir() if file.suffix.lower() in READABLE and file not in labels)
        described = labels or len(files) == 1 or any((path / name).is_file() for name in CONFIGS)
        if codes is None and files and not (described and foreign_files(path, CODES)):
            return files
        broken: dict[str, Exception] | None = None if failed is None else {}
        runs = [file for file in path.iterdir() if file.is_dir() and is_run(file) and file.suffix != WORKING]
        self.runs.update(runs)
        models = sorted([*runs, *models_below(path, codes, failed=broken)])
        if not models:
            ambiguous = (error for error in (broken or {}).values() if isinstance(error, ValueError))
            raise next(ambiguous, no_models(path, codes))
        if failed is not None:
            failed |= broken or {}
        return models


def _one_line(error: Exception) -> str:
    return " ".join(str(error).split())
