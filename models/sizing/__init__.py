"""Memory that a model needs, predicted."""
