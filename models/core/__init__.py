"""The contract of models: calls, outcomes, settings, families."""
