"""Backends of handles: a model on a device of this process, or one that a server serves."""
