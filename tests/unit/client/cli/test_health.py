"""What `scoregate health` shows of a service whose models fail."""

import json

import httpx2 as httpx

REASON = "the questions model (models.questions): cannot be reached (ConnectError)"
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


def test_a_degraded_metric_is_named_in_the_first_line_and_has_its_reason(command):
    """And no "yes" in the table."""
    status, out, _ = command(answer, "health")
    lines = out.splitlines()
    [row] = [line for line in lines if line.startswith("dsg ") and "degraded" not in line]

    assert (0, "ready; degraded: dsg, gecko") == (status, lines[0])
    assert "no" == row.split()[-1]
    assert f"dsg gecko degraded: {REASON}" == lines[-1]


def test_programs_find_the_reason_with_the_metric(command):
    """As `/models` has it."""
    shown = json.loads(command(answer, "health", "--json")[1])

    assert (True, REASON) == (shown["ready"], shown["metrics"]["dsg"]["degraded"])
