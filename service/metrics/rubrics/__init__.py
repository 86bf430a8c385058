"""The rubrics that a VQA model is asked with, as TOML files."""
