"""The scores of the demo models that are shipped, with their pictures."""

import json
import re
from pathlib import Path

from scoregate.cli.known import Case, Known

GOLDEN = Path(__file__).with_name("golden")
SCORES = GOLDEN / "demo.json"  # by `python -m demo.record_golden`
TOLERANCE = 0.001  # float32 on other processors


def shipped() -> list[Known]:
    """Return the shipped scores.  The revision of a demo model is a digest of its weights."""
    return [
        Known(
            metric,
            re.compile(f"^{re.escape(entry['model'])}$"),
            TOLERANCE,
            {
                name: [
                    Case(f"{name}: {prompt}", GOLDEN / name, prompt, score) for prompt, score in row.items()
                ]
                for name, row in entry["scores"].items()
            },
            "the shipped scores are checked without --t2v-metrics",
        )
        for metric, entry in json.loads(SCORES.read_text("utf-8")).items()
    ]
