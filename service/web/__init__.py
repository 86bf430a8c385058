"""HTTP: the edge, API keys, requests to the engine's inputs, and reports to responses."""
