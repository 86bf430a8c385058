"""The service around models of the family `fake` as a process, with all its ports."""

import hashlib
import json
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from demo.process import SERVICE, free_port, running, url, wait_until_ready
from tests.support.nginx_server import listens
from tests.support.paths import ROOT
from tests.support.service import until

PROFILE = ROOT / "loadtest" / "fake.toml"
MODELS = {"clip", "vqa", "questions", "detector"}
COMMAND = (*SERVICE, "--config", str(PROFILE))
DIALECTS = ["flow_factory", "unirl", "rerank", "decisions", "chat_judge", "cosmos_rl", "openrlhf", "slime"]
KEY, QUOTA = "a key of the tests", 60  # pairs of an item and a metric a minute
SPARE = "spare"  # a second model of a role, which no metric uses: it may be away


@dataclass
class FakeService:
    """
    A running one.

    Attributes:
        directory: the folder of its files.
        main: the port of the service's own API.
        private: the port of the dialects over HTTP.
        pickled: the port of the dialects whose bodies are pickles.
    """

    process: "subprocess.Popen[bytes]"
    directory: Path
    main: int
    private: int
    pickled: int

    @property
    def url(self) -> str:
        """The address of the service's own API."""
        return url(self.main)

    @property
    def keys(self) -> Path:
        """The file of its API keys, where it has any."""
        return self.directory / "keys.toml"


@contextmanager
def fake_service(directory: Path, *, ready: bool = True, **settings: str) -> Iterator[FakeService]:
    """Yield a service with all dialects and a policy, its files in *directory*, once *ready* or listening."""
    main, private, pickled = free_port(0), free_port(0), free_port(0)
    settings = {
        "SCOREGATE_CACHE__QUESTIONS": f"sqlite:///{directory}/questions.sqlite3",
        "SCOREGATE_DIALECTS__ENABLED": json.dumps(DIALECTS),
        "SCOREGATE_DIALECTS__PORT": str(private),
        "SCOREGATE_DIALECTS__PICKLE_PORT": str(pickled),
        "SCOREGATE_POLICIES__SHOW__ACCEPT": "vqascore >= 0.5 and clipscore >= 0",
        "SCOREGATE_POLICIES__SHOW__RANK_BY": "vqascore",
        "SCOREGATE_POLICIES__SHOW__TIMEOUT_MS": "60000",  # on a busy machine, too
    } | settings
    with running(main, COMMAND, directory / "stderr", **settings) as process:
        if ready:
            wait_until_ready(process, main)
        else:
            until(lambda: listens(main))
        yield FakeService(process, directory, main, private, pickled)


@contextmanager
def locked_service(directory: Path) -> Iterator[FakeService]:
    """Yield one with `SPARE` that logs decisions and takes `KEY`; tests add tables to its file of keys."""
    keys = directory / "keys.toml"
    keys.write_text(key_table("tests", KEY, f"quota = {QUOTA}"), "utf-8")
    settings = {
        "SCOREGATE_SERVER__API_KEYS_FILE": str(keys),
        "SCOREGATE_DECISIONS__LOG": f"sqlite:///{directory}/decisions.sqlite3",
        "SCOREGATE_MODELS__SPARE__FAMILY": "fake",
        "SCOREGATE_MODELS__SPARE__ROLE": "clip",
        "SCOREGATE_MODELS__SPARE__REQUIRED": "false",
    }
    with fake_service(directory, **settings) as running:
        yield running


def key_table(name: str, key: str, *limits: str) -> str:
    """Return the table of a key in a file of keys."""
    return "\n".join([f"[{name}]", f'sha256 = "{hashlib.sha256(key.encode()).hexdigest()}"', *limits]) + "\n"
