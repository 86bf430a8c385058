"""A premise and a hypothesis as tokens."""

from dataclasses import dataclass

LENGTH = 512  # tokens of a pair: what NLI models are trained on


@dataclass(frozen=True, slots=True)
class Text:
    """
    One pair.

    Attributes:
        ids: tokens of both texts.
        parts: of each token 0 for the premise and 1 for the hypothesis, where the network is told that.
        truncated: the pair was cut at the model's length.
    """

    ids: tuple[int, ...]
    parts: tuple[int, ...] = ()
    truncated: bool = False
