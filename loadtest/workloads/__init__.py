"""Workloads of trainers, filters and pipelines: what is sent, and when."""
