"""Shadows: a second model scores a share of the traffic of a first one, and both are compared."""
