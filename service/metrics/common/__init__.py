"""What metrics share: their contract, question sets, composites, calls of models."""
