"""How many levels go around the circle of a cyclic factor."""

from collections.abc import Sequence

from unbraid.base.arguments import check_entries, check_whole
from unbraid.metrics._shared.inputs import Inputs

MOST_LEVELS = 1_000_000  # around a circle; combinations are numbered by 64 bits


def cyclic_sizes(inputs: Inputs, cyclic: Sequence[int], sizes: Sequence[int] | None) -> tuple[int, ...]:
    """Number of levels around the circle of each of these factors; the level of that number is level 0 again.

    Raises:
        ValueError: a level is negative or above the size given, or sizes has another length than factors.
    """
    if sizes is not None:
        check_entries("sizes", sizes, inputs.n_factors)
    lengths = []
    for factor in cyclic:
        column = inputs.factors[:, factor]
        top = int(column.max()) + 1
        length = top if sizes is None else check_whole(f"sizes[{factor}]", sizes[factor], 1, MOST_LEVELS)
        if column.min() < 0 or top > length + 1:
            raise ValueError(
                f"factors column {factor} is cyclic with {length} levels and must hold 0 to {length - 1}; "
                f"got {column.min():g} to {column.max():g}"
            )
        lengths.append(length)
    return tuple(lengths)


def notes_on_closed(inputs: Inputs, cyclic: Sequence[int], lengths: Sequence[int]) -> tuple[str, ...]:
    """Cyclic factors whose last level is their first again."""
    return tuple(
        f"factor {factor}: level {length} is level 0 again, {length} levels go around"
        for factor, length in zip(cyclic, lengths, strict=True)
        if inputs.factors[:, factor].max() == length
    )
