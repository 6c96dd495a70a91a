"""The version of the package, as it was installed: pyproject.toml says it, and nothing else does."""

from importlib import metadata

VERSION = metadata.version("unbraid")
