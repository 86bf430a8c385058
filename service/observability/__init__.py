"""Prometheus metrics, logs, traces and warnings."""
