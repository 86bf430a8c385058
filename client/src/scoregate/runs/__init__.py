"""Runs over data sets: rows, plans, results that the next run continues, manifests, shards and clusters."""
