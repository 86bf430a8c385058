"""How the command ends: the codes, and the errors that lead to them."""

from http import HTTPStatus

import scoregate
from scoregate.text import shown

OK = 0
NO_SCORE = 1  # a response, but some requested score is missing
USAGE = 2  # the call or its input is wrong, and stays wrong
UNREACHABLE = 3  # the service does not answer, or cannot now; later it may
INTERRUPTED = 130

LATER = frozenset({408, 429, 502, 503})  # statuses of a service that may answer a moment later


class UsageFault(Exception):
    """The call or its input is wrong; the message is one line for people."""


class NoResult(Exception):
    """A requested score is missing; the message is one line for people."""


def exit_code(error: scoregate.ScoregateError) -> int:
    """Return the code that *error* of a whole call ends the command with."""
    if isinstance(error, scoregate.ConnectionFailed | scoregate.Timeout) or error.status in LATER:
        return UNREACHABLE
    return USAGE if 400 <= (error.status or 500) < 500 else NO_SCORE


def described(error: scoregate.ScoregateError) -> str:
    """Return *error* in one line: its code, what it says, and every place of the request that is wrong."""
    places = [f"{fault['pointer']}: {fault['detail']}" for fault in error.errors or ()]
    hint = "; set SCOREGATE_API_KEY, or --api-key" if error.status == HTTPStatus.UNAUTHORIZED else ""
    return shown(f"{error.code}: " + ("; ".join(places) or error.detail) + hint)
