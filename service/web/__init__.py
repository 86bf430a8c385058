"""HTTP: requests to the engine's inputs, and reports to responses."""
