"""A decoder as a program that a page runs."""
