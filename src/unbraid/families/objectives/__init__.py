"""Objectives: pure functions of tensors, in nats per image."""
