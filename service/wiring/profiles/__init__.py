"""The demo profile."""
