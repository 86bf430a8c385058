"""API keys and their rights: kept as hashes, compared in constant time, called by their name in logs."""

import asyncio
import hashlib
import hmac
import logging
import os
import re
import stat
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from time import monotonic

from service.core.concurrency.single_flight import SingleFlight
from service.core.concurrency.threads import on_thread
from service.core.errors import Forbidden
from service.core.lanes import LANES
from service.core.settings import SettingsError

log = logging.getLogger("scoregate.keys")

LINE = re.compile(r"([\w.-]{1,64}):([0-9a-f]{64})((?:\s+\w+=\S+)*)")
QUOTA = re.compile("[1-9][0-9]{0,11}")
FORM = "NAME:SHA256-OF-THE-KEY, then lanes=LANE,LANE and quota=NUMBER where they are wanted"
EMPTY = hashlib.sha256(b"").digest()  # what a script writes where the variable with the key is not set
AGAIN_S = 1.0  # after which whoever comes has the file read again
READ_S = 2.0  # for the file; a network's folder may hang
MAX_BYTES = 2**20  # some 10,000 keys


@dataclass(frozen=True, slots=True)
class Key:
    """
    A key and what it may do.

    Attributes:
        name: what logs call it.
        digest: the SHA-256 of the key.
        lanes: those that it may use.
        quota: pairs of an item and a metric that it may ask for in a minute; None for any number.
    """

    name: str
    digest: bytes
    lanes: tuple[str, ...] = LANES
    quota: int | None = None

    def lane(self, asked: str | None) -> str:
        """The lane of a request that asked for that one, or for none.  Raises `Forbidden`."""
        if asked is None:
            return self.lanes[0]
        if asked not in self.lanes:
            raise Forbidden(f"the key {self.name} may not use the lane {asked}; it may use {self.lanes[0]}")
        return asked


ANYONE = Key("", b"")  # where no keys are configured


class Keys:
    """The keys that open this service; none configured means that it is open."""

    def __init__(self, keys: Iterable[Key]) -> None:
        self._keys = list(keys)

    @classmethod
    def read(cls, path: Path | None) -> "Keys":
        """The keys of a file.  Raises `SettingsError` where it cannot be read, and as `parse`."""
        try:
            return cls.parse(content_of(path)) if path else cls([])
        except OSError as exc:
            raise SettingsError(f"server.api_keys_file: {exc}") from exc
        except ValueError as exc:
            raise SettingsError(f"server.api_keys_file: {path}: {exc}") from exc

    @classmethod
    def parse(cls, content: bytes) -> "Keys":
        """The keys of a file's lines.  Raises `ValueError`, also for an empty key and where there is none."""
        lines = [line.strip() for line in content.decode("utf-8").splitlines()]
        keys = [key_of(line) for line in lines if line and not line.startswith("#")]
        if not keys:
            raise ValueError(f"it has no line {FORM}")
        return cls({key.name: key for key in keys}.values())

    def __bool__(self) -> bool:
        return bool(self._keys)

    def of(self, headers: Mapping[str, str]) -> Key | None:
        """The key that a request's headers hold, if it is one of ours."""
        scheme, _, given = headers.get("authorization", "").partition(" ")
        key = given.strip() if scheme.lower() == "bearer" else headers.get("x-api-key", "")
        if not key:
            return None
        digest = hashlib.sha256(key.encode()).digest()
        same = [known for known in self._keys if hmac.compare_digest(known.digest, digest)]
        return same[0] if same else None


def content_of(path: Path) -> bytes:
    """A regular file's content.  Raises `OSError`, and `ValueError` for anything else or for too much."""
    # A pipe that nobody writes to would keep whoever opens it.
    with open(os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC), "rb") as file:
        if not stat.S_ISREG(os.fstat(file.fileno()).st_mode):
            raise ValueError("it is not a regular file")
        content = file.read(MAX_BYTES + 1)
    if len(content) > MAX_BYTES:
        raise ValueError(f"it is larger than {MAX_BYTES >> 20} MiB")
    return content


def key_of(line: str) -> Key:
    """The key of one line.  Raises `ValueError`, which does not show the line."""
    matched = LINE.fullmatch(line)
    if not matched:
        raise ValueError(f"a line is not {FORM}")
    name, digest = matched[1], bytes.fromhex(matched[2])
    if digest == EMPTY:
        raise ValueError(f"the key of {name} is empty")
    rights = [right.split("=", 1) for right in matched[3].split()]
    given = dict(rights)
    if len(given) < len(rights) or given.keys() - {"lanes", "quota"}:
        raise ValueError(f"a right of {name} is not known, or stands there twice; the form is {FORM}")
    lanes = given.get("lanes", ",".join(LANES)).split(",")
    if not {*lanes} <= {*LANES}:
        raise ValueError(f"a lane of {name} is none of {', '.join(LANES)}")
    if "quota" in given and not QUOTA.fullmatch(given["quota"]):
        raise ValueError(f"the quota of {name} is no whole number of at least 1")
    quota = int(given["quota"]) if "quota" in given else None
    return Key(name, digest, tuple(lane for lane in LANES if lane in lanes), quota)


class KeyFile:
    """
    The keys of a file, as it is now: within a second of a change, whoever comes meets the new ones.

    It is read on a thread, and those who come meanwhile wait for it together.  A file that became wrong, or
    that cannot be read in time, changes nothing, and is one line in the log.

    Args:
        clock: seconds, at any origin.

    Raises:
        SettingsError: the file cannot be used at the start.
    """

    def __init__(self, path: Path | None, clock: Callable[[], float] = monotonic) -> None:
        self._path, self._clock = path, clock
        self._keys, self._wrong = Keys.read(path), ""
        self._read = clock()
        self._reading: SingleFlight[Keys] = SingleFlight()

    async def keys(self) -> Keys:
        """The keys that count now."""
        if self._path and self._clock() >= self._read + AGAIN_S:
            await self._read_again()
        return self._keys

    async def _read_again(self) -> None:
        """Take over what the file says now."""
        wrong = ""
        try:
            async with asyncio.timeout(READ_S):
                self._keys, _ = await self._reading.do("", self._on_a_thread)
        except SettingsError as exc:
            wrong = str(exc)
        except TimeoutError:
            wrong = f"server.api_keys_file: {self._path}: could not be read within {READ_S:g} s"
        self._read = self._clock()
        if wrong and wrong != self._wrong:
            log.error("%s; the keys that were read before stay", wrong)
        self._wrong = wrong

    async def _on_a_thread(self) -> Keys:
        """The keys of the file."""
        return await on_thread(Keys.read, self._path)
