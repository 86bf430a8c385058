"""docs/operations/running.md: its steps, run on a service that keeps running."""

import os
import stat
import subprocess

import httpx
import pytest

from tests.support.fake_service import key_table
from tests.support.packages import files_of
from tests.support.pages import page
from tests.support.service import until

PAGE = "operations/running.md"


@pytest.fixture
def scripts(tmp_path):
    """The page's scripts, as they are pasted: a function that runs one and returns what it prints."""
    for name, text in files_of(PAGE).items():
        (tmp_path / name).write_text(text, "utf-8")

    def run(name, *arguments):
        command = ["bash", str(tmp_path / name), *map(str, arguments)]
        return subprocess.run(command, capture_output=True, text=True, check=True, timeout=60).stdout.strip()

    return run


def test_a_key_is_replaced_while_the_service_runs(locked_service, scripts):
    """The new one works beside the old one, then the old one is refused; nothing is restarted."""
    file = locked_service.keys
    with file.open("a", encoding="utf-8") as keys:
        keys.write("# ours\n" + key_table("trainer", "old", 'lanes = ["bulk"]'))
    os.chmod(file, 0o640)
    with httpx.Client(base_url=locked_service.url, timeout=60, trust_env=False) as client:

        def status(key):
            return client.get("/models", headers={"X-API-Key": key}).status_code

        until(lambda: status("old") == 200)
        new = scripts("add-key.sh", file, "trainer-2")
        until(lambda: status(new) == 200)
        both = status("old")
        scripts("remove-key.sh", file, "trainer")
        until(lambda: status("old") == 401)
        after = status(new)

    assert (200, 200) == (both, after)
    assert 0o640 == stat.S_IMODE(file.stat().st_mode)
    assert [file] == list(file.parent.glob("keys*"))
    assert new not in file.read_text("utf-8")


@pytest.mark.parametrize("name", [PAGE, "operations/kubernetes.md", "guides/troubleshooting.md"])
def test_no_page_asks_for_a_restart_after_a_key_was_changed(name):
    """The file is read again while the service runs."""
    text = " ".join(page(name).split())

    assert "read at the start only" not in text
    assert "keys](../api.md#keys) is read at the start" not in text
    assert "They are read at the start: after a change" not in text
