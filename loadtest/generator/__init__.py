"""Sends a workload from a process of its own, and notes what came of each request."""
