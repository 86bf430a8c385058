"""Bodies and connections, below FastAPI."""
