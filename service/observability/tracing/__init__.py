"""Spans, sent to an OpenTelemetry collector."""
