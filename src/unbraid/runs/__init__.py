"""Trained models as folders of plain files: reading them, and what can be asked of a model."""
