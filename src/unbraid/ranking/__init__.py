"""Ranking and choice of models without labels."""
