"""The load generator: sends a workload from its own process, and records the result of each request."""
