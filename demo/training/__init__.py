"""The demo models' training, on rendered scenes."""
