"""Ground-truth factors of variation: what varies, which images to draw, and how to pair them."""

from unbraid.factors.objects import all_objects, cyclic_columns, one_object, turned, whole_objects
from unbraid.factors.pairs import Series, WeakPairs, labelled_pairs, turntables, walks, weak_pairs
from unbraid.factors.predicate import predicate
from unbraid.factors.sampling import correlation, few_labels, sample
from unbraid.factors.space import FactorSpace, FactorTable, Space

__all__ = [
    "FactorSpace",
    "FactorTable",
    "Series",
    "Space",
    "WeakPairs",
    "all_objects",
    "correlation",
    "cyclic_columns",
    "few_labels",
    "labelled_pairs",
    "one_object",
    "predicate",
    "sample",
    "turned",
    "turntables",
    "walks",
    "weak_pairs",
    "whole_objects",
]
