"""Predicts latencies and GPU counts from arrivals and the cost of a batch, with the service's own queue."""
