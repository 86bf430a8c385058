"""API keys: kept as hashes, compared in constant time, named in logs by their name alone."""

import hashlib
import hmac
import re
from collections.abc import Mapping
from pathlib import Path

from service.settings import SettingsError

LINE = re.compile(r"([\w.-]{1,64}):([0-9a-f]{64})")
EMPTY = hashlib.sha256(b"").digest()  # what a script writes where the variable with the key is not set


class Keys:
    """The keys that open this service; none configured means that it is open."""

    def __init__(self, hashes: Mapping[str, bytes]) -> None:
        self._hashes = dict(hashes)

    @classmethod
    def read(cls, path: Path | None) -> "Keys":
        """Keys from lines of `name:sha256-of-the-key`.  Raises `SettingsError`, also for an empty key."""
        if path is None:
            return cls({})
        try:
            lines = [line.strip() for line in path.read_text("utf-8").splitlines()]
        except (OSError, ValueError) as exc:
            raise SettingsError(f"server.api_keys_file: {exc}") from exc
        matched = [LINE.fullmatch(line) for line in lines if line and not line.startswith("#")]
        if not matched or None in matched:
            raise SettingsError(f"server.api_keys_file: {path}: a line is not NAME:SHA256-OF-THE-KEY")
        hashes = {m[1]: bytes.fromhex(m[2]) for m in matched if m}
        if empty := [name for name, known in hashes.items() if known == EMPTY]:
            raise SettingsError(f"server.api_keys_file: {path}: the key of {empty[0]} is empty")
        return cls(hashes)

    def __bool__(self) -> bool:
        return bool(self._hashes)

    def name_of(self, headers: Mapping[str, str]) -> str | None:
        """The name of the key that a request's headers hold, if it is one of ours."""
        scheme, _, given = headers.get("authorization", "").partition(" ")
        key = given.strip() if scheme.lower() == "bearer" else headers.get("x-api-key", "")
        if not key:
            return None
        digest = hashlib.sha256(key.encode()).digest()
        same = [name for name, known in self._hashes.items() if hmac.compare_digest(known, digest)]
        return same[0] if same else None
