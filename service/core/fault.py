"""The base of all errors: a status, a code, a sentence, and the faulty places of a request."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from difflib import get_close_matches
from typing import Any, Self

MAX_NAME = 64  # characters of an unknown name that are compared with the valid ones


@dataclass(frozen=True, slots=True)
class Fault:
    """
    A faulty place of a request: a JSON pointer, a code and a sentence.

    Attributes:
        valid: the names that could stand there, if the fault is an unknown name or value.
        did_you_mean: the one of them that is most like it; empty if none is.
    """

    pointer: str
    code: str
    detail: str
    valid: Sequence[str] = ()
    did_you_mean: str = ""

    @classmethod
    def unknown(cls, pointer: str, code: str, detail: str, name: str, valid: Sequence[str]) -> Self:
        """Return the fault of the unknown *name*, with the *valid* one that is most like it in any case."""
        folded = {each.casefold(): each for each in valid}
        close = next((folded[each] for each in get_close_matches(name[:MAX_NAME].casefold(), folded, 1)), "")
        hint = f"; did you mean {close}?" if close else ""
        return cls(pointer, code, f"{detail}{hint}", valid, close)


class ScoregateError(Exception):
    """Base of all errors; raised by itself, it is an internal error of the service."""

    status = 500
    code = "internal"
    title = "Internal error"
    detail = "internal error; the log of the service has more under this request id"
    exact_wait = False  # True if `retry_after_s` is exact and specific to the caller

    def __init__(
        self,
        detail: str = "",
        *,
        faults: Sequence[Fault] = (),
        retry_after_s: float | None = None,
    ) -> None:
        self.detail = detail or type(self).detail
        self.faults = tuple(faults)
        self.retry_after_s = retry_after_s or None  # 0: to wait does not help
        super().__init__(self.detail)

    def __reduce__(self) -> tuple[Any, ...]:
        """Pickle the class and its state, since subclasses have other constructors."""
        return remade, (type(self), self.__dict__)

    def of_part(self, name: str) -> Self:
        """Return a copy whose detail names the part of a composite that failed."""
        error = type(self).__new__(type(self))
        error.__dict__ |= self.__dict__
        error.detail = f"{name}: {self.detail}"
        error.args = (error.detail,)
        return error


def remade(kind: type[ScoregateError], state: Mapping[str, Any]) -> ScoregateError:
    """Return the error that `__reduce__` pickled."""
    error = kind.__new__(kind, state["detail"])
    error.__dict__ |= state
    return error


def bare(error: ScoregateError) -> ScoregateError:
    """Return the error without its traceback, whose frames would keep pictures in memory."""
    error.__traceback__ = error.__cause__ = error.__context__ = None
    return error
