"""Ground-truth factors of variation: what varies, which images to draw, how to pair and split them."""

from unbraid.factors.objects import all_objects, cyclic_columns, one_object, turned, whole_objects
from unbraid.factors.pairs import Series, WeakPairs, labelled_pairs, turntables, walks, weak_pairs
from unbraid.factors.predicate import predicate
from unbraid.factors.sampling import correlation, few_labels, sample
from unbraid.factors.space import FactorSpace, FactorTable, Space
from unbraid.factors.splits import Split, combinations, split_at_random, split_by_combination, split_by_condition

__all__ = [
    "FactorSpace",
    "FactorTable",
    "Series",
    "Space",
    "Split",
    "WeakPairs",
    "all_objects",
    "combinations",
    "correlation",
    "cyclic_columns",
    "few_labels",
    "labelled_pairs",
    "one_object",
    "predicate",
    "sample",
    "split_at_random",
    "split_by_combination",
    "split_by_condition",
    "turned",
    "turntables",
    "walks",
    "weak_pairs",
    "whole_objects",
]
