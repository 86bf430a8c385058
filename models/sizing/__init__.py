"""Predicted memory: dry runs on a device that need not exist."""
