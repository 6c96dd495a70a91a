"""Decoders that a page runs by itself."""
