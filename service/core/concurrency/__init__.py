"""Threads, tasks and budgets that requests share."""
