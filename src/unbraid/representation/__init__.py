"""Codes with the labels of their samples, from arrays, frames and files."""

from unbraid.representation.representation import INFORMATIVE as INFORMATIVE
from unbraid.representation.representation import POSTERIOR as POSTERIOR
from unbraid.representation.representation import READABLE as READABLE
from unbraid.representation.representation import SUFFIXES as SUFFIXES
from unbraid.representation.representation import Representation as Representation
