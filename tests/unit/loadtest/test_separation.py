"""The load tests are clients of the service."""

import ast

import pytest

from tests.support.paths import ROOT


@pytest.mark.slow
@pytest.mark.parametrize("top", ["service", "models"])
def test_nothing_of_the_service_imports_the_load_test(top):
    """What measures the service is no part of it."""
    for path in (ROOT / top).rglob("*.py"):
        for node in ast.walk(ast.parse(path.read_text("utf-8"))):
            names = [alias.name for alias in node.names] if isinstance(node, ast.Import) else []
            names += [node.module or ""] if isinstance(node, ast.ImportFrom) else []
            assert not [name for name in names if name.partition(".")[0] == "loadtest"], path
