"""A data set with people's ratings, as `scoregate report` takes it."""

import json
from pathlib import Path
from typing import Any

import pytest

from tests.support.pictures import png
from tests.unit.client.cli.conftest import COLOURS

NAMED = ("--human", "people", "--model", "generator", "--skill", "kind")


@pytest.fixture
def ratings(tmp_path: Path) -> list[dict[str, Any]]:
    """Twenty prompts with a picture from each of two generators, and people's ratings."""
    rows: list[dict[str, Any]] = []
    for number in range(20):
        for generator in ("paint", "crayon"):
            name = f"{generator}-{number}.png"
            (tmp_path / name).write_bytes(png(COLOURS[number % 4], size=(20 + number, 24)))
            rows.append(
                {
                    "image": name,
                    "prompt": f"a {COLOURS[number % 4]} square, {number}",
                    "generator": generator,
                    "kind": f"kind {number % 3}",
                    "people": number % 4 + 2 * (generator == "paint"),
                }
            )
    (tmp_path / "rows.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows), "utf-8")
    return rows
