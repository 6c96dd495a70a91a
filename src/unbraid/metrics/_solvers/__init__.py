"""Learners that metrics share, most of them compiled: arrays in, arrays out, without kinds of factors."""
