"""A client that is made from `/openapi.json` scores and ranks."""

import json
import shutil
from pathlib import Path

import httpx

from tests.process.real_clients.conftest import PICTURES, PROMPT
from tests.support import clients

SCRIPT = Path(__file__).with_name("generated.py")


def test_openapi_python_client_makes_a_client_without_a_warning(service, tmp_path):
    """It leaves nothing out, and what it made has every kind of request answered."""
    document = tmp_path / "openapi.json"
    document.write_bytes(httpx.get(f"{service.url}/openapi.json", timeout=60, trust_env=False).content)
    options = ["--path", document, "--output-path", "generated_client", "--meta", "none", "--fail-on-warning"]
    made = clients.run(clients.program("openapi-python-client"), "generate", *options, cwd=tmp_path)
    assert 0 == made.returncode, made.stdout + made.stderr

    script = shutil.copy(SCRIPT, tmp_path)
    given = {"url": service.url, "prompt": PROMPT, "images": PICTURES}
    ran = clients.run(clients.program(), script, given=given, cwd=tmp_path)
    assert 0 == ran.returncode, ran.stderr
    answer = json.loads(ran.stdout)

    assert service.scores == answer["scores"]
    assert [list(pair) for pair in service.ranking] == answer["ranking"]
    assert [service.ranking[0][0]] == answer["accepted"]
    assert sorted(answer["logits"]) != sorted(answer["scores"])
    assert ["Is there a red dog?"] == answer["questions"]
    assert {"vqascore", "clipscore", "dsg"} <= {*answer["metrics"]}
