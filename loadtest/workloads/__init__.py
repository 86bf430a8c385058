"""Workloads of trainers, filters and pipelines."""
