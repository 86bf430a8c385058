"""Why something of others failed, for a message of one line."""

MAX_LENGTH = 200  # characters of an exception's own words


def in_short(exc: Exception) -> str:
    """What was raised, as one line that is not too long."""
    return f"{type(exc).__name__}: {' '.join(str(exc).split())[:MAX_LENGTH]}"
