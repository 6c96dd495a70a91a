"""Helpers that know nothing of the field."""
