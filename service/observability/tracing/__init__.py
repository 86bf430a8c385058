"""Spans, exported to an OpenTelemetry collector."""
