"""Rows to learn from, to tune on and to be judged on."""

from dataclasses import dataclass, replace

import numpy as np

from unbraid.base.types import ArrayLike, IntArray
from unbraid.data.labels import check_groups
from unbraid.metrics._shared.inputs import Inputs, split_rows
from unbraid.metrics._shared.sharing import shared
from unbraid.metrics._shared.train_test_split import with_test_rows

FRACTIONS = (0.8, 0.1, 0.1)  # of the rows: to train on, to tune on, to test on


@dataclass(frozen=True, eq=False)
class TrainValidTest:
    """Rows to train on, to tune on and to test on, of codes and factors that hold all of them."""

    inputs: Inputs
    train: IntArray
    valid: IntArray  # empty where nothing is tuned
    test: IntArray
    note: str
    n_known: int | None = None  # rows that were not given to test on, which come first; None where none were given

    @property
    def groups(self) -> IntArray | None:
        """Those of the training rows, numbered anew; None where rows stand alone."""
        groups = self.inputs.groups
        return None if groups is None else check_groups(groups[self.train], len(self.train))


@shared
def train_valid_test(
    inputs: Inputs,
    seed: int,
    test_codes: ArrayLike | None,
    test_factors: ArrayLike | None,
    fractions: tuple[float, ...] = FRACTIONS,
) -> TrainValidTest:
    """Rows drawn at random by these fractions; a test set of one's own takes the place of the last.

    With two fractions nothing is kept for validation. No group of rows is in two parts.

    Raises:
        ValueError: as `with_test_rows`, or a part would be empty.
    """
    n_samples, groups = inputs.n_samples, inputs.groups
    both = with_test_rows(inputs, test_codes, test_factors)
    if both is None:
        *parts, test = split_rows(n_samples, fractions, seed, groups)
        drawn = "drawn at random"
    else:
        inputs = both
        if groups is not None:  # those given to test on are one of their own
            n_groups = int(groups.max()) + 1
            inputs = replace(inputs, groups=np.append(groups, np.full(inputs.n_samples - n_samples, n_groups)))
        shares = tuple(fraction / sum(fractions[:-1]) for fraction in fractions[:-1])
        parts = list(split_rows(n_samples, shares, seed, groups)) if len(shares) > 1 else [np.arange(n_samples)]
        test = np.arange(n_samples, inputs.n_samples)
        drawn = "test rows as given"
    train, valid = parts if len(parts) == 2 else (parts[0], test[:0])
    sizes = f"{len(train)} training, {len(valid)} validation and {len(test)} test rows"
    if not len(valid):
        sizes = f"{len(train)} training and {len(test)} test rows"
    n_known = None if both is None else n_samples
    return TrainValidTest(inputs, train, valid, test, f"{sizes}, {drawn}", n_known)
