"""The service, built from its settings."""
