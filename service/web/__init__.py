"""HTTP: requests to what the engine works on, and reports to responses."""
