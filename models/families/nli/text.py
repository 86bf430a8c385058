"""A premise and a hypothesis as tokens."""

from dataclasses import dataclass

LENGTH = 512  # tokens of a pair: what NLI models are trained on


@dataclass(frozen=True, slots=True)
class Text:
    """
    One pair.

    Attributes:
        ids: tokens of both texts.
        parts: token type ids: 0 for the premise, 1 for the hypothesis; empty if the network has none.
        truncated: the pair was cut at the model's length.
        unknown: the share of unknown tokens.
    """

    ids: tuple[int, ...]
    parts: tuple[int, ...] = ()
    truncated: bool = False
    unknown: float = 0.0
