"""`scoregate-server serve --model NAME` as a process."""

import json
import shlex
import subprocess

from demo.process import HOST, SERVICE, free_port, stop


def test_a_model_is_served_by_its_name(tmp_path):
    """The lines before and after loading are printed, and the request among them is answered."""
    port = free_port(0)
    arguments = ("--model", "demo:clip_flant5", "--devices", "cpu", "--host", HOST, "--port", str(port))
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
        answer = subprocess.run(
            [*shlex.split(lines[-1]), "--noproxy", "*"], stdout=subprocess.PIPE, check=True, timeout=60
        )
    finally:
        stop(process)
        process.stdout.close()

    said = "".join(lines)
    assert 0 == process.returncode, (tmp_path / "stderr").read_text()
    assert "cpu: " in said.partition("Ready:")[0]
    assert f"Ready: vqascore, checklist. Open http://{HOST}:{port}/ in a browser" in said
    assert 0.5 < json.loads(answer.stdout)["results"][0]["scores"]["vqascore"] <= 1
