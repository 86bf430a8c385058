"""mosec around our models."""
