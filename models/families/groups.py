"""Groups of questions that run together, each padded to its longest."""

from collections.abc import Sequence
from dataclasses import dataclass

MAX_PADDING_RATIO = 1.25  # tokens with padding for each token of a group


@dataclass(frozen=True, slots=True)
class Size:
    """The size of one question: tokens with its image, and the number and longest tokens of its answers."""

    length: int
    answers: int = 0
    longest: int = 0

    @property
    def tokens(self) -> int:
        """Tokens of the question and all its answers, padded to the longest."""
        return self.length + self.answers * self.longest


def alike(sizes: Sequence[Size]) -> list[list[int]]:
    """
    Group the indices of questions of similar size.

    A group is padded to its longest question.  Without groups one long question would pad its whole
    batch: one of 24 took the memory of 80.
    """
    groups: list[list[int]] = []
    for number in sorted(range(len(sizes)), key=lambda number: -sizes[number].tokens):
        longer = [*groups[-1], number] if groups else []
        if longer and padded([sizes[one] for one in longer]) <= MAX_PADDING_RATIO:
            groups[-1] = longer
        else:
            groups.append([number])
    return groups


def padded(group: Sequence[Size]) -> float:
    """Return the ratio of a group's tokens with padding to those without."""
    widest = Size(
        max(size.length for size in group),
        max(size.answers for size in group),
        max(size.longest for size in group),
    )
    return len(group) * widest.tokens / sum(size.tokens for size in group)
