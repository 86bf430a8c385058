"""The last calls of a served model: whether they failed, and when one is retried."""

from math import inf

from models.core.contract import Prepared, UpstreamError
from service.serving.backends.upstream import ServerFailed

IN_A_ROW = 3  # failed answers, each of which may be its own call's fault
OF_THE_CALL = {400, 413, 422}  # statuses with which a server rejects the content of a call
AGAIN_S, MOST_S = 5.0, 60.0  # until the failed call is retried, doubled with each retry


class LastCalls:
    """
    Why a model failed its last calls, until one works again.

    A server that does not answer fails all calls, so one is enough.  The last failed call is retried,
    since callers that read the reason may send nothing more.

    Attributes:
        reason: in a few words that follow the model's name; empty if the last call worked.
    """

    def __init__(self) -> None:
        self.worked()

    def worked(self) -> None:
        """Note a call that was answered, and forget earlier failures."""
        self._failed = 0
        self._last: Prepared | None = None
        self._next, self._again_s = inf, AGAIN_S
        self.reason = ""

    def failed(self, call: Prepared, error: UpstreamError, now: float) -> None:
        """Note a call that failed."""
        self._failed += 1
        self._last = call
        of_the_server = isinstance(error, ServerFailed) and error.status not in OF_THE_CALL
        if of_the_server or self._failed >= IN_A_ROW:
            self._next = self._next if self.reason else now
            calls = "call" if self._failed == 1 else f"{self._failed} calls"
            self.reason = f"failed its last {calls}: {error}"

    def take_due(self, now: float) -> Prepared | None:
        """Return the call to retry now, if one is due, and schedule its next retry."""
        if not self.reason or now < self._next:
            return None
        self._next, self._again_s = now + self._again_s, min(MOST_S, 2 * self._again_s)
        return self._last
