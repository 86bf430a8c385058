"""API keys, their rights and their quotas: stored as hashes, compared in constant time, named in logs."""

import asyncio
import hashlib
import hmac
import logging
import os
import stat
import tomllib
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from time import monotonic, time
from typing import Annotated, Any, Literal

from pydantic import Field, StringConstraints, TypeAdapter, ValidationError

from models.core.messages import reason_of
from service.core.concurrency.cpu_threads import on_thread
from service.core.concurrency.sharing import SingleFlight
from service.core.errors import Forbidden, LargerThanQuota, QuotaExceeded
from service.core.fields import WHOLE, Strict
from service.core.lanes import LANES
from service.core.retry_after import UsedQuota, expected_wait_s
from service.core.settings import SettingsError

log = logging.getLogger("scoregate.keys")

EMPTY_DIGEST = hashlib.sha256(b"").hexdigest()  # a script whose variable with the key is not set writes it
RECHECK_S = 1.0  # seconds between two checks of the file
READ_S = 2.0  # reading the file may take so long; a network folder may hang
SETTLED_S = 2.0  # a file that changed this recently may change again with the same modification time
MAX_BYTES = 2**20  # some 10,000 keys
MINUTE_S = 60.0
ROUNDING_PAIRS = 1e-6  # pairs; so a request after exactly `retry_after_s` is admitted


@dataclass(frozen=True, slots=True)
class Key:
    """
    A key and its rights.

    Attributes:
        name: its name in logs.
        digest: the SHA-256 of the key.
        lanes: lanes that it may use.
        quota: pairs of an item and a metric per minute; None for no limit.
        models: whether it may change models.
        endpoints: `decide` or `label`, if it may use no other path; None for all paths but labels.
    """

    name: str
    digest: bytes
    lanes: tuple[str, ...] = LANES
    quota: int | None = None
    models: bool = False
    endpoints: tuple[str, ...] | None = None

    def check_path(self, path: str) -> None:
        """Raise `Forbidden` if the key may not use a path."""
        endpoint = endpoint_of(path)
        allowed = endpoint != "label" if self.endpoints is None else endpoint in self.endpoints
        if not allowed:
            named = ", ".join(self.endpoints or ()) or "no labels"
            raise Forbidden(f"the key {self.name} may not use this path; its endpoints are: {named}")

    def lane(self, requested: str | None) -> str:
        """Return the lane of a request.  Raises `Forbidden`."""
        if requested is None:
            return self.lanes[0]
        if requested not in self.lanes:
            allowed = self.lanes[0]
            raise Forbidden(f"the key {self.name} may not use the lane {requested}; it may use {allowed}")
        return requested


def endpoint_of(path: str) -> str:
    """Return the endpoint of a key's rights that a path belongs to; empty for other paths."""
    if path in ("/decide", "/policies"):
        return "decide"
    return "label" if path.startswith("/decisions/") and path.endswith("/label") else ""


ANYONE = Key("", b"")  # every caller has it if no keys are configured


class KeyTable(Strict):
    """
    The table of one key in the file `server.api_keys_file`, named as the log names the key.

    A quota fills steadily, in each process. With too little left, the response is 429 `quota_exceeded`; a
    request for more than a minute is 413 `larger_than_quota`. `/score` counts items times metrics; `/decide`
    items times metrics computed; `/rank` the pictures, and with a cascade the kept pictures again; `/compare`
    the pictures or twice the pairs; `/questions` the prompts. Cached answers count, rejected requests do not.
    """

    sha256: Annotated[str, StringConstraints(pattern="^[0-9a-f]{64}$")] = Field(
        description="The SHA-256 of the key in hex."
    )
    lanes: Annotated[list[Literal["interactive", "bulk"]], Field(min_length=1)] | None = Field(
        None, description="The lanes that it may use, by default both; another lane is 403 `forbidden`."
    )
    quota: Annotated[int, Field(ge=1, lt=10**12), WHOLE] | None = Field(
        None, description="Most pairs of an item and a metric per minute."
    )
    models: bool = Field(False, description="Whether it may change models; else they are 403 `forbidden`.")
    endpoints: Annotated[list[Literal["decide", "label"]], Field(min_length=1)] | None = Field(
        None,
        description="The key may use `/decide` and `/policies`, or label decisions, and no other path. Not "
        "set: all paths but labels.",
    )


TABLES: TypeAdapter[dict[str, KeyTable]] = TypeAdapter(
    Annotated[
        dict[Annotated[str, StringConstraints(pattern=r"^[\w.-]{1,64}$")], KeyTable], Field(min_length=1)
    ]
)


class Keys(tuple[Key, ...]):
    """The keys of this service; without any, every caller is served."""

    __slots__ = ()

    @classmethod
    def read(cls, path: Path | None) -> "Keys":
        """Read a TOML file with a table for each key.  Raises `SettingsError`."""
        try:
            if path is None:
                return cls()
            return cls.of_tables(tomllib.loads(content_of(path).decode("utf-8-sig")))
        except OSError as exc:
            raise SettingsError(f"server.api_keys_file: {reason_of(exc)}") from exc
        except (ValueError, RecursionError) as exc:
            raise SettingsError(f"server.api_keys_file: {path}: {exc}") from exc

    @classmethod
    def of_tables(cls, tables: Mapping[str, Any]) -> "Keys":
        """Check the tables of a file.  Raises `ValueError`, whose text quotes nothing but names."""
        try:
            checked = TABLES.validate_python(tables)
        except ValidationError as exc:
            first = exc.errors(include_input=False, include_context=False)[0]
            raise ValueError(f"{'.'.join(map(str, first['loc'])) or 'keys'}: {first['msg']}") from None
        for name, table in checked.items():
            if table.sha256 == EMPTY_DIGEST:
                raise ValueError(f"the key of {name} is empty")
        return cls(
            Key(
                name,
                bytes.fromhex(table.sha256),
                tuple(lane for lane in LANES if lane in (table.lanes or LANES)),
                table.quota,
                table.models,
                None if table.endpoints is None else tuple(dict.fromkeys(table.endpoints)),
            )
            for name, table in checked.items()
        )

    def of(self, headers: Mapping[str, str]) -> Key | None:
        """Return the key in a request's headers, if it is one of these."""
        scheme, _, credentials = headers.get("authorization", "").partition(" ")
        key = credentials.strip() if scheme.lower() == "bearer" else headers.get("x-api-key", "")
        if not key:
            return None
        digest = hashlib.sha256(key.encode()).digest()
        same = [known for known in self if hmac.compare_digest(known.digest, digest)]
        return same[0] if same else None


def content_of(path: Path) -> bytes:
    """Read a regular file.  Raises `OSError`, and `ValueError` if it is no regular file or too large."""
    # Opening a pipe without a writer would block.
    with open(os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC), "rb") as file:
        if not stat.S_ISREG(os.fstat(file.fileno()).st_mode):
            raise ValueError("it is not a regular file")
        content = file.read(MAX_BYTES + 1)
    if len(content) > MAX_BYTES:
        raise ValueError(f"it is larger than {MAX_BYTES >> 20} MiB")
    return content


class KeyFile:
    """
    The keys of a file, reloaded when it changes.

    A request checks the file's modification time if the last check is a second ago.  The check runs on a
    thread, and concurrent requests wait for it together.  If the file has become invalid, or cannot be read
    in time, the keys stay, and one line is logged.

    Args:
        clock: seconds, at any origin.
        read: returns the keys of the file.

    Raises:
        SettingsError: the file cannot be used at the start.
    """

    def __init__(
        self,
        path: Path | None,
        clock: Callable[[], float] = monotonic,
        read: Callable[[Path | None], Keys] = Keys.read,
    ) -> None:
        self._path, self._clock, self._read = path, clock, read
        self._keys, self._error = read(path), ""
        self._stamp: tuple[int, ...] | None = None
        self._checked = clock()
        self._checking: SingleFlight[Keys] = SingleFlight()

    async def keys(self) -> Keys:
        """Return the current keys."""
        if self._path and self._clock() >= self._checked + RECHECK_S:
            await self._check(self._path)
        return self._keys

    async def _check(self, path: Path) -> None:
        error = ""
        try:
            async with asyncio.timeout(READ_S):
                self._keys, _ = await self._checking.do("", lambda: on_thread(self._reload, path))
        except SettingsError as exc:
            error = str(exc)
        except TimeoutError:
            error = f"server.api_keys_file: {path}: could not be read within {READ_S:g} s"
        self._checked = self._clock()
        if error and error != self._error:
            log.error("%s; the keys that were read before stay", error)
        self._error = error

    def _reload(self, path: Path) -> Keys:
        """Read the file if it has changed."""
        try:
            status = path.stat()
        except OSError as exc:
            raise SettingsError(f"server.api_keys_file: {reason_of(exc)}") from exc
        stamp = (status.st_ino, status.st_size, status.st_mtime_ns)
        if stamp == self._stamp:
            return self._keys
        keys = self._read(path)
        self._stamp = stamp if time() - status.st_mtime > SETTLED_S else None
        return keys


class Quotas:
    """
    A bucket for each key: it holds a minute's pairs of an item and a metric, and fills steadily.

    So after a pause a caller may use a whole minute's quota in one request.

    Args:
        clock: seconds, at any origin.
    """

    def __init__(self, clock: Callable[[], float] = monotonic) -> None:
        self._clock = clock
        self._left: dict[str, tuple[float, float]] = {}  # a key's pairs, and when they were counted

    def charge(self, key: Key, pairs: int) -> None:
        """
        Take *pairs* from the key's bucket; a negative number gives them back.

        Raises:
            LargerThanQuota: the bucket never holds so many.
            QuotaExceeded: it holds fewer now; with the seconds until it holds enough.
        """
        if key.quota is None:
            return
        if pairs > key.quota:
            detail = (
                f"{pairs} pairs of an item and a metric; the key {key.name} may have {key.quota} a minute"
            )
            raise LargerThanQuota(detail)
        now, per_s = self._clock(), key.quota / MINUTE_S
        left, since = self._left.get(key.name, (float(key.quota), now))
        left = min(key.quota, left + (now - since) * per_s)
        if pairs > left + ROUNDING_PAIRS:
            wait_s = expected_wait_s(UsedQuota(pairs - left, per_s))
            allowed = f"the key {key.name} may have {key.quota} pairs of an item and a metric a minute"
            raise QuotaExceeded(f"{allowed}; it may have {pairs} in {wait_s:.1f} s", retry_after_s=wait_s)
        self._left[key.name] = left - pairs, now
