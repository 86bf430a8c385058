"""infinity, which has its own model code, with a CLIP that both it and the service can load."""
