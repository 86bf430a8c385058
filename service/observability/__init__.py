"""Prometheus metrics, logs and traces."""
