"""Sweeps of many models: run, resume, rank without labels, compare."""
