"""The contract of question stores, with a cache of recent sets in memory, and leases that stay renewed."""

from abc import ABC, abstractmethod
from collections import OrderedDict
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from contextlib import asynccontextmanager, suppress

from service.core.concurrency.watcher import Watcher
from service.core.errors import NotReady
from service.questions.sets import QuestionSet

LEASE_S = 5.0  # a lease that is not renewed expires after it


class LeaseLost(Exception):
    """A set was not stored, since another process may be writing one."""


class Store(ABC):
    """
    Sets by id, and ids by lookup key.

    Processes may share the backend.  The first set stored under a lookup key is in force for all of them, so
    that a prompt has one set everywhere.  Stored content that is not a set counts as missing, and the next
    set replaces it.

    A lease ensures that one process writes the set of a lookup key.  It expires soon after its holder ends,
    and a holder that was too slow cannot store anything with its token.

    All methods raise `NotReady` if the backend fails.
    """

    def __init__(self, in_memory: int) -> None:
        self._in_memory = in_memory
        self._recent: OrderedDict[str, QuestionSet] = OrderedDict()  # keys are lookup keys and ids

    async def find(self, *names: str) -> QuestionSet | None:
        """Return the set under the first lookup key or id that has one; sets in memory come first."""
        found = self._known(names)
        if found is None:
            found = await self._find(*names)
            if found is None:
                return self._known(names)  # another process may have stored it in the meantime
            self._remember(names[0], found)
        return found

    async def get(self, id: str) -> QuestionSet | None:
        """Return the set with that id."""
        return await self.find(id)

    async def put(self, key: str, questions: QuestionSet, token: str | None = None) -> QuestionSet:
        """
        Store a set under its id and a lookup key, and return the set in force, which may be an earlier one.

        Raises:
            LeaseLost: *token* is not that of the lease on *key*.  Nothing was stored.
        """
        in_force = await self._put(key, questions, token)
        self._remember(key, in_force)
        self._remember(in_force.id, in_force)
        return in_force

    @asynccontextmanager
    async def lease(self, key: str, sleep: Callable[[float], Awaitable[None]]) -> AsyncIterator[str | None]:
        """
        Yield the token of a lease on *key*, renewed until the block ends, or None if another process has one.

        If the store fails in the meantime, the block goes on.  The lease may expire then, and `put` refuses
        its token.

        Raises:
            NotReady: the store failed at the beginning.
        """
        token: str | None = None

        async def hold() -> None:  # the first call claims the lease, and the others renew it
            nonlocal token
            if token is None:
                token = await self.claim(key)
                return
            with suppress(NotReady):
                await self.renew(key, token)

        holding = Watcher(hold, LEASE_S / 3, sleep)
        await holding.start()
        if token is None:
            await holding.aclose()
        try:
            yield token
        finally:
            await holding.aclose()
            if token is not None:
                with suppress(NotReady):
                    await self.release(key, token)

    @abstractmethod
    async def claim(self, key: str) -> str | None:
        """Return the token of a new lease on a lookup key, for `LEASE_S`; None if it is taken."""

    @abstractmethod
    async def renew(self, key: str, token: str) -> None:
        """Extend the lease to `LEASE_S` from now, if *token* is still valid."""

    @abstractmethod
    async def release(self, key: str, token: str) -> None:
        """End the lease, if *token* is still valid."""

    @abstractmethod
    def sets(self) -> AsyncIterator[tuple[str, QuestionSet | None]]:
        """Yield every stored id with its set, or with None if the content is not a set."""

    @abstractmethod
    async def _find(self, *names: str) -> QuestionSet | None: ...

    @abstractmethod
    async def _put(self, key: str, questions: QuestionSet, token: str | None) -> QuestionSet: ...

    def _known(self, names: Sequence[str]) -> QuestionSet | None:
        for name in names:
            if name in self._recent:
                self._recent.move_to_end(name)
                return self._recent[name]
        return None

    def _remember(self, name: str, questions: QuestionSet) -> None:
        self._recent[name] = questions
        while len(self._recent) > self._in_memory:
            self._recent.popitem(last=False)
