"""Matrices on narrow terminals."""

from io import StringIO

import pytest
from rich.console import Console

from unbraid.cli.show_command import print_table
from unbraid.scoring.agreement_tables import matrix

NAMES = [f"a_metric.with_a_name_{number}" for number in range(12)]


@pytest.mark.parametrize("width", [40, 80, 300])
@pytest.mark.parametrize("first", [(), ("r", "runs")])
def test_no_number_is_lost_where_columns_do_not_fit(width: int, first: tuple[str, ...]) -> None:
    cells = [[f"-.{row:x}{column:x}*" for column in range(row)] for row in range(12)]
    if first:
        cells = [[f".{row:x}r", f"{row:x}n", *line] for row, line in enumerate(cells)]
    out = StringIO()
    print_table(matrix("all", NAMES, cells, first=first), Console(width=width, file=out))
    shown = out.getvalue()
    assert "…" not in shown
    assert max(map(len, shown.splitlines())) <= width
    words = shown.split()
    assert all(words.count(cell) == 1 for line in cells for cell in line)
    for name in NAMES:
        rows = [line for line in shown.splitlines() if name + " " in line]
        assert [cell for line in rows for cell in line.split()[2:]] == cells[NAMES.index(name)]
