"""Checkpoints: where they lie, what their files are called, how they are read, and what keeps one out."""
