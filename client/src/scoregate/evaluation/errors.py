"""Why there is no figure."""


class BadInput(ValueError):
    """A table or a column that no figure can be computed from; the message is one line."""


class BadColumn(BadInput):
    """
    What is wrong with one column.

    Attributes:
        role: the argument of the function that holds the column, such as `metric`.
        why: one line.
    """

    def __init__(self, role: str, why: str) -> None:
        super().__init__(f"{role}: {why}")
        self.role, self.why = role, why
