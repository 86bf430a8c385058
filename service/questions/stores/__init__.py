"""Where question sets are kept: in a file, or in a Redis that processes share."""
