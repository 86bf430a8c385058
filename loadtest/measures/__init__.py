"""Measures: each module starts the servers it needs and reports figures."""
