"""Rubrics for a VQA model, as TOML files."""
