"""Batches on demand: what waits for a model, who comes next, and the thread that runs it."""
