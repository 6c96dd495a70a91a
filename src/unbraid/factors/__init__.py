"""Ground-truth factors of variation."""

from unbraid.factors.space import FactorSpace

__all__ = ["FactorSpace"]
