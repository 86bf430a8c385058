"""Benchmarks of metrics: the tables of their scores, each in the file of its name."""
