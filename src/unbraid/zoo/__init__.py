"""Codes of trained models, good and bad, to try a metric on: `list` says what there is, `load` gives codes and factors.

24 models are inside the package. The whole zoo is an archive of the release; the environment variable UNBRAID_ZOO, or
`folder`, says where it was unpacked. `build` makes a zoo of your own studies.
"""

from typing import TYPE_CHECKING

from unbraid.zoo.listing import list_models as list
from unbraid.zoo.listing import load as load

if TYPE_CHECKING:
    from unbraid.zoo.building import build as build

__all__ = ["build", "list", "load"]


def __getattr__(name: str) -> object:
    if name == "build":  # it scores, and metrics take a second to load
        from unbraid.zoo.building import build

        return build
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
