"""A FastAPI app around our models without any batching."""
