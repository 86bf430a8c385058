"""What a request asks of one model, told from its JSON before anything is decoded."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Demand:
    """So many *calls*, and *characters* of text in all of them together."""

    calls: int = 1
    characters: int = 0

    def __add__(self, other: "Demand") -> "Demand":
        """Both."""
        return Demand(self.calls + other.calls, self.characters + other.characters)

    def __mul__(self, times: int) -> "Demand":
        """The same so many times."""
        return Demand(self.calls * times, self.characters * times)
