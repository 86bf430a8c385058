"""The contract of models: calls, results, settings, families."""
