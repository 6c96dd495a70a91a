"""Decoders as programs that a page runs."""
