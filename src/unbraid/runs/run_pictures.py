"""Pictures of what latents do, of many runs."""

from collections.abc import Callable, Mapping
from typing import Any

from unbraid.base.types import Progress
from unbraid.runs.run import Run


def pictures(runs: Mapping[str, Callable[[], Run]], progress: Progress | None = None) -> dict[str, dict[str, Any]]:
    """The picture of each run by its id, from what opens it; where it has none, `missing` says why."""
    found = {}
    for done, (name, opened) in enumerate(runs.items()):
        if progress is not None:
            progress("drawing what latents do", done, len(runs))
        found[name] = picture_or_reason(opened)
    return found


def picture_or_reason(opened: Callable[[], Run]) -> dict[str, Any]:
    """As `picture`, but a page of many runs says what is wrong with one of them in its place."""
    try:
        return opened().picture() or {"missing": "This run decodes no images."}
    except (ValueError, OSError) as error:
        return {"missing": str(error)}
