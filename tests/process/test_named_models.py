"""`scoregate-server serve --model NAME` as a process."""

import subprocess

import httpx

from demo.process import HOST, SERVICE, free_port, stop
from demo.samples import FOLDER


def test_a_model_is_served_by_its_name(tmp_path):
    """The lines before and after loading are printed, and `/score` answers what they say."""
    port = free_port(0)
    arguments = ("--model", "demo:clip", "--devices", "cpu", "--host", HOST, "--port", str(port))
    store = f"SCOREGATE_CACHE__QUESTIONS=sqlite:///{tmp_path}/questions.sqlite3"
    with (tmp_path / "stderr").open("wb") as log:
        process = subprocess.Popen(
            ["env", store, *SERVICE, "serve", *arguments], stdout=subprocess.PIPE, stderr=log, text=True
        )
    try:
        lines = []
        for line in process.stdout:
            lines.append(line)
            if line.startswith("curl "):
                break
        answer = httpx.post(
            f"http://{HOST}:{port}/score",
            data={"prompt": "a red circle", "metrics": "clipscore"},
            files={"image": (FOLDER / "binding.png").read_bytes()},
            timeout=60,
            trust_env=False,
        )
    finally:
        stop(process)
        process.stdout.close()

    said = "".join(lines)
    assert 0 == process.returncode, (tmp_path / "stderr").read_text()
    assert "cpu: " in said.partition("Ready:")[0]
    assert f"Ready: clipscore. Open http://{HOST}:{port}/ in a browser" in said
    assert "-F metrics=clipscore" in lines[-1]
    assert -1 <= answer.json()["results"][0]["scores"]["clipscore"] <= 1
