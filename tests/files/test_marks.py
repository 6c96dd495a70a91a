"""Marks of files: another with every write."""

import time

from unbraid.files.marks import SETTLED, mark


def test_one_young_file_among_old_ones_leaves_the_mark_open() -> None:
    old = ("a", 1, 0, 0)
    now = time.time_ns()
    young, settled = ("b", 1, 0, now), ("b", 1, 0, int(now - 2 * SETTLED * 1e9))
    assert mark([old, young]) != mark([old, young])
    assert mark([old, settled]) == mark([old, settled]) != mark([settled])
