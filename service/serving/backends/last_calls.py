"""How the last calls of a served model went."""

from math import inf

from models.core.contract import Prepared, UpstreamError
from service.serving.backends.upstream import ServerFailed

IN_A_ROW = 3  # bad answers, each of which may be its own call's fault
OF_THE_CALL = {400, 413, 422}  # statuses with which a server refuses what one call says
AGAIN_S, MOST_S = 5.0, 60.0  # until the call that failed is tried again, doubled with every try


class LastCalls:
    """
    Why a model failed its last calls, until one works again.

    A server that does not answer fails all calls, so one is enough.  The call that failed last is kept,
    to be tried again: whoever sees the reason may send nothing more.

    Attributes:
        reason: in a few words that follow the model's name; empty where the last call worked.
    """

    def __init__(self) -> None:
        self.worked()

    def worked(self) -> None:
        """Note a call that was answered, and forget those before it."""
        self._failed = 0
        self._last: Prepared | None = None
        self._next, self._again_s = inf, AGAIN_S
        self.reason = ""

    def failed(self, call: Prepared, error: UpstreamError, now: float) -> None:
        """Note a call that was not answered, or badly."""
        self._failed += 1
        self._last = call
        of_the_server = isinstance(error, ServerFailed) and error.status not in OF_THE_CALL
        if of_the_server or self._failed >= IN_A_ROW:
            self._next = self._next if self.reason else now
            self.reason = f"failed its last {plural(self._failed)}: {error}"

    def take_due(self, now: float) -> Prepared | None:
        """The call that should be tried again now; its next turn is later."""
        if not self.reason or now < self._next:
            return None
        self._next, self._again_s = now + self._again_s, min(MOST_S, 2 * self._again_s)
        return self._last


def plural(calls: int) -> str:
    """So many calls."""
    return "call" if calls == 1 else f"{calls} calls"
