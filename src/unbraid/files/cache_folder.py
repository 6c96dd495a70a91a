"""Where this machine keeps what can be made or fetched again."""

import os
from pathlib import Path

import platformdirs

from unbraid.files.whole_files import with_home


def cache_root(root: str | Path | None = None) -> Path:
    """The folder of all caches: the argument, else UNBRAID_DATA, else the platform's own cache folder."""
    if root is not None:
        return with_home(root)
    if named := os.environ.get("UNBRAID_DATA"):
        return with_home(named)
    return platformdirs.user_cache_path("unbraid", appauthor=False, opinion=False)
