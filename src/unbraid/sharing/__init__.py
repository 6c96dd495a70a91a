"""Scores in the forms that other projects read: model cards of the Hugging Face Hub, and records of evaluations."""
