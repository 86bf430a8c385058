"""The command's function: alone, and on a service that is a function; pictures for it."""

import json
from collections.abc import Callable
from functools import partial
from pathlib import Path
from types import SimpleNamespace

import httpx2 as httpx
import pytest

from scoregate import Client, local
from scoregate.cli.main import main
from tests.support.pauses import Unpaused
from tests.support.pictures import png
from tests.support.shards import tar_of
from tests.unit.client.cli.served import ROWS

COLOURS = ("red", "green", "blue", "white")
Run = Callable[..., SimpleNamespace]
Command = Callable[..., "tuple[int, str, str]"]


@pytest.fixture
def run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Run:
    """Call the command in a folder of the test's own; the result has the fields of a process that ended."""
    monkeypatch.chdir(tmp_path)

    def run(*arguments: str) -> SimpleNamespace:
        try:
            status = main(arguments)
        except SystemExit as ended:  # the parser's
            status = int(ended.code or 0)
        said = capsys.readouterr()
        return SimpleNamespace(returncode=status, stdout=said.out, stderr=said.err)

    return run


@pytest.fixture
def command(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, run: Run, waited: list[float]) -> Command:
    """The command beside a picture and a data set; its status, stdout and stderr."""
    monkeypatch.setenv("SCOREGATE_BASE_URL", "http://test")
    (tmp_path / "p.png").write_bytes(png())
    rows = [{"image": "p.png", "prompt": f"prompt {n}", "good": n % 2} for n in range(ROWS)]
    (tmp_path / "rows.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows), "utf-8")

    def command(
        service: Callable[[httpx.Request], httpx.Response] | None, *arguments: str
    ) -> tuple[int, str, str]:
        transport = Unpaused(service, waited)
        monkeypatch.setattr(local, "Client", partial(Client, transport=transport))
        done = run(*arguments)
        return done.returncode, done.stdout, done.stderr

    return command


@pytest.fixture
def pictures(tmp_path: Path) -> Path:
    """Four pictures with their captions, and one that is broken."""
    folder = tmp_path / "pictures"
    folder.mkdir()
    for colour in (*COLOURS, "broken"):
        data = png("red")[:40] if colour == "broken" else png(colour)
        (folder / f"{colour}.png").write_bytes(data)
        (folder / f"{colour}.txt").write_text(f"a {colour} square\n", "utf-8")
    return folder


@pytest.fixture
def shards(tmp_path: Path) -> None:
    """Three shards of two samples, and one with a broken sample."""
    for number in range(3):
        members: dict[str, bytes | str | None] = {}
        for key in ("0001", "0002"):
            fields = {"prompt": f"{number} {key}", "good": number}
            members |= {f"{key}.png": png("red"), f"{key}.json": json.dumps(fields).encode()}
        tar_of(tmp_path / f"s-{number}.tar", members)
    tar_of(tmp_path / "s-1.tar", {"0001.png": png("red"), "0001.txt": b"a", "0002.txt": b"no picture"})
