"""Places in the repository."""

import ast
from functools import cache
from pathlib import Path

ROOT = Path(__file__).parents[2]
GOLDEN = ROOT / "tests" / "golden"


@cache
def parsed(path: Path) -> ast.Module:
    """Return the syntax tree of a Python file, which is parsed once for all tests of a worker."""
    return ast.parse(path.read_text("utf-8"))


@cache
def import_statements(path: Path) -> list[ast.Import | ast.ImportFrom]:
    """Return the imports of a Python file, wherever they are in it."""
    return [node for node in ast.walk(parsed(path)) if isinstance(node, ast.Import | ast.ImportFrom)]
