"""Pictures and their formats."""
