"""Judges and reward clients in OpenAI's chat format."""
