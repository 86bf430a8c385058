"""The version of what this repository computes: pixels, tokens and forward passes."""

# Raise it with every change of a model's result, even of a rounded digit: it is part of the cache keys.
# tests/models/test_arithmetic.py compares results of each family with those recorded for this version.
ARITHMETIC = 2
