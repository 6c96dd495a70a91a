"""Ground-truth factors of variation."""

from unbraid.factors.space import FactorSpace, FactorTable, Space

__all__ = ["FactorSpace", "FactorTable", "Space"]
