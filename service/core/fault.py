"""What every error has: a status, a code, a sentence, and places of the request that are wrong."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Self


@dataclass(frozen=True, slots=True)
class Fault:
    """One place of a request that is wrong: a JSON pointer, a code and a sentence."""

    pointer: str
    code: str
    detail: str


class ScoregateError(Exception):
    """Base of the tree; its own meaning is "a fault of ours"."""

    status = 500
    code = "internal"
    title = "Internal error"
    detail = "internal error; the log of the service has more under this request id"
    exact_wait = False  # whether `retry_after_s` is known, and the caller's own

    def __init__(
        self,
        detail: str = "",
        *,
        faults: Sequence[Fault] = (),
        retry_after_s: float | None = None,
    ) -> None:
        self.detail = detail or type(self).detail
        self.faults = tuple(faults)
        self.retry_after_s = retry_after_s
        super().__init__(self.detail)

    def __reduce__(self) -> tuple[Any, ...]:
        """As it travels between our processes: the class and what it says, not how it was made."""
        return remade, (type(self), self.__dict__)

    def of_part(self, name: str) -> Self:
        """The same error, whose detail says which part of a whole it is from; several may share this one."""
        error = type(self).__new__(type(self))
        error.__dict__ |= self.__dict__
        error.detail = f"{name}: {self.detail}"
        error.args = (error.detail,)
        return error


def remade(kind: type[ScoregateError], state: Mapping[str, Any]) -> ScoregateError:
    """An error that says *state*."""
    error = kind.__new__(kind, state["detail"])
    error.__dict__ |= state
    return error


def bare(error: ScoregateError) -> ScoregateError:
    """The error without the frames that it came through, which hold pictures for as long as it is held."""
    error.__traceback__ = error.__cause__ = error.__context__ = None
    return error
