"""The demand of a request on one model, computed from its JSON before anything is decoded."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Demand:
    """A number of *calls*, and of *characters* of text in all of them."""

    calls: int = 1
    characters: int = 0

    def __add__(self, other: "Demand") -> "Demand":
        """Add calls and characters."""
        return Demand(self.calls + other.calls, self.characters + other.characters)

    def __mul__(self, times: int) -> "Demand":
        """Multiply calls and characters."""
        return Demand(self.calls * times, self.characters * times)
