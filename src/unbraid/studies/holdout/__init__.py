"""Combinations of factors that a study's models never saw: which are held out, and how well models meet them."""
