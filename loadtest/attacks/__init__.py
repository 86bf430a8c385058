"""Attacks by hostile callers on a process with a memory limit, and their effect on other callers."""
