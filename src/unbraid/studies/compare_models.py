"""Which is better: one of several models, or one group of the runs of a study?"""

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, overload

from unbraid.scoring.compare import ModelComparison
from unbraid.scoring.compare import compare as compare_models
from unbraid.scoring.group_comparison import Comparison, compare_groups, usual_within
from unbraid.scoring.matched_models import Models
from unbraid.scoring.merged_tables import is_table, read_table
from unbraid.studies.opening import is_opened, study_at

if TYPE_CHECKING:
    from unbraid.studies.study import Study


@overload
def compare(models: "Study | str | Path", **options: Any) -> Comparison: ...
@overload
def compare(models: Models, **options: Any) -> ModelComparison: ...
def compare(models: Any, **options: Any) -> Comparison | ModelComparison:
    """Compare models, or groups of the runs of a study: which is better, by how much, and how sure is that?

    Args:
        models: two or more by name, each a `Representation` or its path, or a list of paths; or a study, its folder, or
            a table that `unbraid export` wrote.
        **options: of models, those of `unbraid.scoring.compare.compare` (metrics, confidence, seed, paired, ...);
            of a study or a table, those of `Study.compare` (by, columns, over, within, confidence).

    Returns:
        ModelComparison of models; of a study, Comparison.

    Raises:
        ValueError, FileNotFoundError: as these two; or a path is neither that of a study nor of a table.

    Example:
        >>> from unbraid import Representation
        >>> codes = np.random.default_rng(0).normal(size=(500, 2))
        >>> exact, mixed = (Representation(rows, np.digitize(codes, [0.0])) for rows in (codes, codes + codes[::-1]))
        >>> compare({"exact": exact, "mixed": mixed}, metrics="mig").differences[0].better
        'exact'
    """
    if isinstance(models, str | Path) and is_table(models):
        return _of_table(Path(models), **options)
    with study_at(models) as opened:
        return opened.compare(**options) if is_opened(opened) else compare_models(opened, **options)


def _of_table(
    path: Path,
    by: str = "family",
    columns: str | Sequence[str] | None = None,
    *,
    within: str | None = None,
    **options: Any,
) -> Comparison:
    frame = read_table(path)
    options.pop("progress", None)  # nothing is scored, so there is no progress to report
    return compare_groups(frame, by, columns, within=within or usual_within(frame, by), **options)
