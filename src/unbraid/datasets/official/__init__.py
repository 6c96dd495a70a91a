"""Datasets as their authors publish them: read once from the official file, kept as uint8, and mapped afterwards."""
