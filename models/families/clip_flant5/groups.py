"""Which questions of a batch run together, so that little of their memory is padding."""

from collections.abc import Sequence
from dataclasses import dataclass

SPARE = 1.25  # tokens with padding for each token of a group, at most


@dataclass(frozen=True, slots=True)
class Size:
    """Of one question: tokens with its image, how many answers are decoded, tokens of the longest."""

    length: int
    answers: int
    longest: int

    @property
    def tokens(self) -> int:
        """Of the question and all its answers, as long as the longest each."""
        return self.length + self.answers * self.longest


def alike(sizes: Sequence[Size]) -> list[list[int]]:
    """
    The numbers of questions, in groups of similar size.

    All of a group are padded to its longest.  Without groups one long question would make every other of
    its batch as long, and a batch of 24 take the memory of 80.
    """
    groups: list[list[int]] = []
    for number in sorted(range(len(sizes)), key=lambda number: -sizes[number].tokens):
        longer = [*groups[-1], number] if groups else []
        if longer and padded([sizes[one] for one in longer]) <= SPARE:
            groups[-1] = longer
        else:
            groups.append([number])
    return groups


def padded(group: Sequence[Size]) -> float:
    """Tokens of a group with padding, for each one without."""
    widest = Size(
        max(size.length for size in group),
        max(size.answers for size in group),
        max(size.longest for size in group),
    )
    return len(group) * widest.tokens / sum(size.tokens for size in group)
