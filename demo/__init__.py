"""`make demo` and `make serve`: the first user of the service, over its API as any other."""
