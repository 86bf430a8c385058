"""A clock that a test gives to a part, in place of the process's."""


class Clock:
    """
    Seconds that a test sets; each reading sets them forward by a *step*.

    Attributes:
        now: what the last reading returned, or what was set since.
    """

    def __init__(self, now: float = 0.0, *, step: float = 0.0) -> None:
        self.now, self.step = now, step

    def __call__(self) -> float:
        self.now += self.step
        return self.now

    def set(self, now: float) -> None:
        """Set the time."""
        self.now = now

    def advance(self, seconds: float) -> None:
        """Set the time forward."""
        self.now += seconds
