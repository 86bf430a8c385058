"""Measurements: of the running service, of its models by themselves, and on a GPU."""
