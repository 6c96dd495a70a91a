"""Pictures of what latents do, of many runs."""

from collections.abc import Collection, Mapping
from pathlib import Path
from typing import Any

from unbraid.runs.run import open_run
from unbraid.types import Progress


def pictures(
    runs: Mapping[str, Path], progress: Progress | None = None, trust: Collection[str] = ()
) -> dict[str, dict[str, Any]]:
    """The picture of each run by its id; where it has none, `missing` says why. `trust` as for `unbraid.load_run`."""
    found = {}
    for done, (name, path) in enumerate(runs.items()):
        if progress is not None:
            progress("drawing what latents do", done, len(runs))
        found[name] = picture_or_reason(path, trust)
    return found


def picture_or_reason(run: Path, trust: Collection[str] = ()) -> dict[str, Any]:
    """As `picture`, but a page of many runs says what is wrong with one of them in its place."""
    try:
        return open_run(run, device="cpu", trust=trust).picture() or {"missing": "This run decodes no images."}
    except (ValueError, OSError) as error:
        return {"missing": str(error)}
