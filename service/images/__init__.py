"""Pictures, loaded within limits."""
