"""One request: from items to a report."""
