"""`folders.md`: the folders of the code, with the first line of each package."""

import ast
import tokenize
from pathlib import Path

from docs.render.markdown import code, join, table

ROOT = Path(__file__).parents[2]
TOPS = "service", "models", "client/src/scoregate"
INTRO = """
# Folders of the code

How they work together is in [architecture](../architecture.md). [Models](models.md) has the families.
"""


def page() -> str:
    """Return the page: a row for each package."""
    packages = [path for top in TOPS for path in sorted((ROOT / top).glob("*/**/__init__.py"))]
    rows = [
        [code(f"{path.parent.relative_to(ROOT)}/"), first_line(path)]
        for path in packages
        if path.parents[1].name != "families"
    ]
    return join(INTRO, table(["folder", "contents"], rows))


def first_line(path: Path) -> str:
    """Return the first line of a module's docstring, which is read alone: most of a file is no docstring."""
    with path.open(encoding="utf-8") as lines:
        first = next(
            token
            for token in tokenize.generate_tokens(lines.readline)
            if token.type not in (tokenize.COMMENT, tokenize.NL)
        )
    text = ast.literal_eval(first.string) if first.type == tokenize.STRING else ""
    return str(text).strip().partition("\n")[0]
