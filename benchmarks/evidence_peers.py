"""Our numbers beside those of other programs, in pairs, for evidence.py; each on the same rows and by the same rule."""

import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any, TypeAlias

sys.path.insert(0, str(Path(__file__).parents[1]))  # for what tests keep of programs that are not packages

from tests.metrics.test_peers import CASES, GUARD, LATENTS

from unbraid import metrics

Pairs: TypeAlias = Iterator[tuple[Any, Any]]  # ours, theirs


def mig_of_the_guard() -> Pairs:
    """identifiability-guard, MIGMetric()."""
    for case, printed in GUARD.items():
        yield metrics.mig(CASES[case], LATENTS).score, printed[0]


def mcc_of_the_guard() -> Pairs:
    """The same, MCCMetric() by Pearson and by Spearman: matched and scored on the same rows, of matched factors."""
    for case, printed in GUARD.items():
        for correlation, theirs in (("pearson", printed[1]), ("spearman", printed[2])):
            given: Any = {"fit": "all", "unmatched": "drop", "correlation": correlation}
            yield metrics.mcc(CASES[case], LATENTS, **given).score, theirs


def r2_of_the_guard() -> Pairs:
    """The same, R2Metric(), which has no intercept: not of codes that are shifted."""
    for case, printed in GUARD.items():
        if case != "shifted":
            codes = CASES[case]
            yield metrics.r2(codes, LATENTS, test_codes=codes, test_factors=LATENTS).score, printed[3]
