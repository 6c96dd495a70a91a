"""Codes of trained models, good and bad, to try a metric on: `list` says what there is, `load` gives codes and factors.

24 models are inside the package. The whole zoo is an archive of the release; the environment variable UNBRAID_ZOO, or
`folder`, says where it was unpacked.
"""

from unbraid.zoo.listing import list_models as list
from unbraid.zoo.listing import load as load

__all__ = ["list", "load"]
