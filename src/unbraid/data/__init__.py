"""Codes with the labels of their samples, and the factors of variation behind them."""

from unbraid.data.code_files import POSTERIOR as POSTERIOR
from unbraid.data.code_files import READABLE as READABLE
from unbraid.data.code_files import SUFFIXES as SUFFIXES
from unbraid.data.objects import all_objects, cyclic_columns, one_object, turned, whole_objects
from unbraid.data.pairs import Series, WeakPairs, labelled_pairs, turntables, walks, weak_pairs
from unbraid.data.predicate import predicate
from unbraid.data.representation import INFORMATIVE as INFORMATIVE
from unbraid.data.representation import Representation as Representation
from unbraid.data.sampling import correlation, few_labels, sample
from unbraid.data.space import FactorSpace, FactorTable, Space

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
