"""Quality of metrics: semantic error graphs of the demo world, scored through the service."""
