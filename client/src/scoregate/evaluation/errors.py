"""Errors of figures."""


class BadInput(ValueError):
    """A table or a column is not valid for the figure; the message is one line."""


class BadColumn(BadInput):
    """
    A column is not valid for the figure.

    Attributes:
        role: the argument of the function that holds the column, such as `metric`.
        why: one line.
    """

    def __init__(self, role: str, why: str) -> None:
        super().__init__(f"{role}: {why}")
        self.role, self.why = role, why
