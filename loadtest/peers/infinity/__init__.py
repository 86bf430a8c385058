"""infinity, which brings its own model code, with a CLIP that it and the service can both load."""
