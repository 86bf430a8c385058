"""Prometheus metrics, logs and warnings."""
