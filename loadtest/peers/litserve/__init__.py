"""LitServe around our models."""
