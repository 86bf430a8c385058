"""A FastAPI app around our models, and nothing else: what most people would write first."""
