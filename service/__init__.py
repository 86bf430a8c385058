"""Scoregate: the service between the socket and the models."""

__version__ = "0.1.0"
