"""What is wrong with a model, as far as its codes say so by themselves."""

from collections.abc import Mapping
from types import MappingProxyType

import numpy as np

from unbraid.base.types import BoolArray
from unbraid.data import Representation

ALIKE = 0.99  # correlation from which two codes are copies
END = 1e-3  # of a code's range: what lies so close to its lowest or highest value is at it
MOST_AT_END = 0.5  # of the rows, above which a code is saturated

DEFECTS: Mapping[str, str] = MappingProxyType(
    {
        "untrained": "its weights are those that its training began with",
        "collapsed": "all codes together have less than one bit of information, or none varies by more than .02",
        "few codes": "fewer codes tell of their row than there are factors",
        "copies": f"two codes that tell of their row have a correlation of {ALIKE} or more",
        "saturated": "a code that tells of its row is at an end of its range in more than half of the rows",
    }
)


def defects_of(representation: Representation) -> tuple[str, ...]:
    """Those of DEFECTS that the codes show, of a whole representation with its log-variances where it has any.

    A model without log-variances is taken to use every code that varies.
    """
    used = used_codes(representation)
    codes = representation.codes[:, used].astype(float)
    shown_by_defect = {
        "collapsed": representation.tells_nothing() or representation.varies_little(),
        "few codes": used.sum() < len(representation.names),
        "copies": _copies(codes),
        "saturated": _saturated(codes),
    }
    return tuple(name for name, shown in shown_by_defect.items() if shown)


def used_codes(representation: Representation) -> BoolArray:
    """(n_codes,) which codes tell of their row; without log-variances those that vary."""
    informative = representation.informative()
    return np.ptp(representation.codes, axis=0) > 0 if informative is None else informative


def _copies(codes: np.ndarray) -> bool:
    varying = codes[:, np.ptp(codes, axis=0) > 0]
    if varying.shape[1] < 2:
        return False
    correlation = np.abs(np.corrcoef(varying.T))
    np.fill_diagonal(correlation, 0.0)
    return bool(correlation.max() >= ALIKE)


def _saturated(codes: np.ndarray) -> bool:
    """Whether a code, of more than two values, has most rows at its ends."""
    for code in codes.T:
        low, high = code.min(), code.max()
        at_end = ((code - low <= END * (high - low)) | (high - code <= END * (high - low))).mean()
        if at_end > MOST_AT_END and len(np.unique(code)) > 2:
            return True
    return False
