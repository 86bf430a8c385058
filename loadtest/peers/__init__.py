"""Comparison with other model servers around the same models."""
