"""The service, assembled from its settings."""
