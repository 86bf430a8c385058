"""`scoregate-server doctor`: checks of the machine and of the servers that a profile names."""
