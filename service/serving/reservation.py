"""What a request was admitted for and has not asked for yet."""

from collections.abc import MutableMapping


class Reservation:
    """
    Tokens that count against a lane from the admission of a request until it asks for them.

    A large request asks for a part of its calls at a time, so the queue alone does not tell how much was
    admitted.

    Args:
        reserved: tokens by lane, of all requests.
        parts: that the request begins one after another, each with an equal share.
    """

    def __init__(self, reserved: MutableMapping[str, float], lane: str, cost: float, parts: int) -> None:
        self._reserved, self._lane = reserved, lane
        self._left, self._part = cost, cost / parts
        reserved[lane] += cost

    def begin_part(self) -> None:
        """One more part is asked for now, and counted by the queue from here on."""
        self._give_back(min(self._part, self._left))

    def close(self) -> None:
        """The request has ended: what is left will not be asked for."""
        self._give_back(self._left)

    def _give_back(self, cost: float) -> None:
        self._left -= cost
        self._reserved[self._lane] -= cost
