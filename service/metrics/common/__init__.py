"""What metrics share."""
