"""httpx has one import, so that one line moves the service to a fork of it."""

import re
from pathlib import Path

ROOT = Path(__file__).parents[3]
IMPORT = re.compile(r"^\s*(import|from) httpx", re.MULTILINE)


def test_httpx_is_imported_in_one_module():
    """Every other module imports it from there."""
    files = [path for folder in ("service", "models") for path in (ROOT / folder).rglob("*.py")]
    importing = [path for path in files if IMPORT.search(path.read_text("utf-8"))]

    assert [ROOT / "service/core/http.py"] == importing
