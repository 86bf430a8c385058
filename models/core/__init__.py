"""What models, calls and results are."""
