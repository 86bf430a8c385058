"""Clients that others wrote, against a real service: `make clients` builds their environment."""
