"""How sure a number is: intervals, nulls and baselines."""
