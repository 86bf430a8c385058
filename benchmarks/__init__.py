"""Measurements of the models by themselves, without the service."""
