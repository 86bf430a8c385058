"""What `scoregate health` shows of a service whose models fail."""

import json

import httpx2 as httpx

import scoregate
from scoregate.cli import health

REASON = "the question LLM (models.questions): cannot be reached (ConnectError)"
MODEL = {"name": "vqa", "role": "vqa", "id": "m", "revision": "", "device": "cpu", "ready": True}
METRICS = {
    "dsg": {"models": ["vqa", "questions"], "ready": False, "degraded": REASON},
    "gecko": {"models": ["vqa", "questions"], "ready": False, "degraded": REASON},
    "vqascore": {"models": ["vqa"], "ready": True},
}


def answer(request):
    """A service that is ready, with a metric that is degraded."""
    if request.url.path == "/readyz":
        return httpx.Response(200, json={"ready": True, "reasons": []})
    return httpx.Response(200, json={"models": [MODEL], "metrics": METRICS, "limits": {}})


def told(monkeypatch, capsys, *, as_json):
    """What the command prints."""
    client = scoregate.Client("http://test", transport=httpx.MockTransport(answer))
    monkeypatch.setattr(health, "connected", lambda *arguments, **more: client)
    arguments = type("Arguments", (), {"json": as_json})()

    assert 0 == health.run(arguments)
    return capsys.readouterr().out


def test_a_degraded_metric_is_named_in_the_first_line_and_has_its_reason(monkeypatch, capsys):
    """And no "yes" in the table."""
    lines = told(monkeypatch, capsys, as_json=False).splitlines()
    [row] = [line for line in lines if line.startswith("dsg ") and "degraded" not in line]

    assert "ready; degraded: dsg, gecko" == lines[0]
    assert "no" == row.split()[-1]
    assert f"dsg gecko degraded: {REASON}" == lines[-1]


def test_programs_find_the_reason_with_the_metric(monkeypatch, capsys):
    """As `/models` has it."""
    shown = json.loads(told(monkeypatch, capsys, as_json=True))

    assert (True, REASON) == (shown["ready"], shown["metrics"]["dsg"]["degraded"])
