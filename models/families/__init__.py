"""A folder for each family of models, and their registry."""
