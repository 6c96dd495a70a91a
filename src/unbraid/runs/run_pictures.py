"""Small pictures of the latent traversals of many runs."""

from collections.abc import Callable, Mapping
from typing import Any

from unbraid.base.types import Progress
from unbraid.runs.run import Run


def pictures(runs: Mapping[str, Callable[[], Run]], progress: Progress | None = None) -> dict[str, dict[str, Any]]:
    """By id, the picture of each run, or the reason under `missing`; `runs` holds functions that open runs."""
    entries = {}
    for done, (name, opened) in enumerate(runs.items()):
        if progress is not None:
            progress("drawing what latents do", done, len(runs))
        entries[name] = picture_or_reason(opened)
    return entries


def picture_or_reason(opened: Callable[[], Run]) -> dict[str, Any]:
    """`Run.picture`, or the reason why there is none, which a page shows in its place."""
    try:
        return opened().picture() or {"missing": "This run decodes no images."}
    except (ValueError, OSError) as error:
        return {"missing": str(error)}
