"""docs/performance.md: the script for one's own traffic."""

import json
import re
import runpy
import sys

from tests.support.packages import files_of
from tests.support.pictures import png


def test_arrivals_are_sent_at_their_rate_and_their_latency_is_printed(
    fake_service, tmp_path, monkeypatch, capsys
):
    """About as many as the rate says; those without a score are counted by code."""
    rows = [{"image": "cat.png", "prompt": "a cat"}, {"image": "broken.png", "prompt": "a cat"}]
    (tmp_path / "rows.jsonl").write_text("\n".join(map(json.dumps, rows)), "utf-8")
    (tmp_path / "cat.png").write_bytes(png())
    (tmp_path / "broken.png").write_bytes(png()[:40])
    (tmp_path / "own_traffic.py").write_text(files_of("performance.md")["own_traffic.py"], "utf-8")
    monkeypatch.setenv("SCOREGATE_BASE_URL", fake_service.url)
    monkeypatch.setattr(sys, "argv", ["own_traffic.py", str(tmp_path / "rows.jsonl"), "100", "1"])

    runpy.run_path(str(tmp_path / "own_traffic.py"))

    line = capsys.readouterr().out
    [scores], [broken] = re.findall(r"^(\d+) scores", line), re.findall(r"'image_undecodable': (\d+)}", line)
    assert 50 < int(scores) + int(broken) < 200
    assert min(int(scores), int(broken)) > 10
    assert re.search(r"p50 \d+\.\d{3} s, p99 \d+\.\d{3} s", line)
