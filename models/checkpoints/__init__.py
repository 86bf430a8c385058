"""Checkpoints: their location, the names of their files, reading and checking them."""
