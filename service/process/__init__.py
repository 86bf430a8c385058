"""The command line and the process: ports, launch, shutdown."""
