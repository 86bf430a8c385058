"""The command and the process it starts: ports, launch, shutdown."""
