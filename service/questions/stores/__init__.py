"""Stores of question sets: a SQLite file, or a Redis that processes share."""
