"""Caches of models' outcomes, so that equal calls are computed once."""
