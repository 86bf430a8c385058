"""The HTTP library has one import in the service and one in the client, so that one line moves each."""

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[3]
IMPORT = re.compile(r"^\s*(?:import|from) (httpx2?)\b", re.MULTILINE)


@pytest.mark.parametrize(
    ("folders", "module", "library"),
    [
        (("service", "models"), "service/core/http.py", "httpx"),
        (("client",), "client/src/scoregate/http.py", "httpx2"),
    ],
    ids=["service", "client"],
)
def test_the_http_library_is_imported_in_one_module(folders, module, library):
    """Every other module imports it from there; the client's is httpx2 (ADR 0026)."""
    files = [path for folder in folders for path in (ROOT / folder).rglob("*.py")]
    imported = {path.relative_to(ROOT).as_posix(): IMPORT.findall(path.read_text("utf-8")) for path in files}

    assert {module: [library]} == {path: names for path, names in imported.items() if names}
