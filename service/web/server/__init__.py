"""Connections and request bodies, below FastAPI."""
