"""One request: items, metrics over them, ranking, comparison in pairs, the report."""
