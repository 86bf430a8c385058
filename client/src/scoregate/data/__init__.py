"""Data sets: folders, tables and shards, row by row."""
