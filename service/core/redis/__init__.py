"""A Redis that processes share: its address, and a client that never keeps anybody waiting."""
