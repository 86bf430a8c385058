"""Benchmarks: tables from the user's copy of their data, and from scores, answers or pictures."""
