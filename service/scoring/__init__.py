"""One request: items, metrics over them, ranking, the report."""
