"""Which metric to trust: semantic error graphs of the demo world, scored through the service."""
