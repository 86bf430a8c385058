"""The version of what this repository computes: pixels, tokens and forward passes."""

# Raised by every change after which some model answers otherwise than before, be it by a rounded digit:
# what was answered under another version is asked again.  tests/models/test_arithmetic.py holds answers
# of each family beside it, and fails where they differ from those that were recorded for this version.
ARITHMETIC = 1
