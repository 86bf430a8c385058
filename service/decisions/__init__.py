"""The log of decisions: a SQLite file that the client's commands read."""
