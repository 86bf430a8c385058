"""Models: loaded weights behind one small synchronous contract (see `models.base`)."""
