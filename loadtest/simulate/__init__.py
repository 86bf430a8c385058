"""Prediction of latencies and GPU counts from arrivals and batch costs, with the service's own queue."""
