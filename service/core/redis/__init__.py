"""A Redis that processes share: its address, and a client with bounded waits."""
