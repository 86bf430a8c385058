"""Benchmarks of generators: the tables of answers about their pictures, each in the file of its name."""
