"""Logs of decisions: exported, erased, labelled, and sampled for labels."""
