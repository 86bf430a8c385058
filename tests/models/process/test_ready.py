"""The last lines of `serve --model NAME`, from a service of those models that is ready."""

import socket

import pytest

from service.process.model_names import profile_of
from service.process.ready import SAMPLE_FILE, ready
from service.serving.loading import load_models
from service.wiring.load import settings_of
from tests.support.services import running

pytestmark = pytest.mark.anyio

ON_CPU = ["cpu"]
URL = "http://127.0.0.1:8000"


async def last_lines(folder, *names, url=URL, sample=SAMPLE_FILE, **server):
    """The lines of a service of the models *names* that is ready."""
    tree = profile_of(names, server, ON_CPU, "") | {"cache": {"questions": f"sqlite:///{folder}/q.sqlite3"}}
    async with running(tree, load_models(settings_of(tree, "--model", {}))) as service:
        return ready(service, url, sample)


@pytest.mark.parametrize("keys", ["", "keys.toml"])
async def test_the_last_lines_have_a_request_to_paste(keys, tmp_path):
    """With a picture that exists, and the key's header if a key is required."""
    text = await last_lines(
        tmp_path, "demo:clip", **({"api_keys_file": str(tmp_path / keys)} if keys else {})
    )

    assert "Ready: clipscore." in text
    assert f"curl -sS {URL}/score -F image=@{SAMPLE_FILE} -F 'prompt=a green circle and a red square'" in text
    assert "-F metrics=clipscore" in text
    assert SAMPLE_FILE.is_file()
    assert ("SCOREGATE_API_KEY" in text) == bool(keys)


async def test_the_request_to_paste_names_a_unix_socket(tmp_path):
    """No browser opens one."""
    text = await last_lines(tmp_path, "demo:clip", url="unix:/run/a b.sock")

    assert "Ready: clipscore. Serving unix:/run/a b.sock: paste this" in text
    assert "curl -sS --unix-socket '/run/a b.sock' http://localhost/score -F image=" in text


async def test_without_a_checkout_the_reader_names_a_picture(tmp_path):
    """As for an installed package."""
    text = await last_lines(tmp_path, "demo:clip", sample=tmp_path / "none.png")

    assert "-F image=@IMAGE -F 'prompt=a cat'" in text


async def test_a_metric_that_its_model_cannot_serve_is_not_ready(tmp_path):
    """The demo's VQA model has no single token for a grade, so `judge` is refused."""
    text = await last_lines(tmp_path, "demo:clip_flant5")

    assert "Ready: vqascore, checklist. " in text
    assert "judge" not in text


async def test_a_metric_whose_server_is_away_is_not_ready_yet(tmp_path):
    """As in `/health`, with the reason; the others can be requested."""
    with socket.create_server(("127.0.0.1", 0)) as closed:
        port = closed.getsockname()[1]
    text = await last_lines(tmp_path, "demo:clip_flant5", f"openai:m@http://127.0.0.1:{port}")

    assert "Ready: vqascore, checklist. " in text
    assert "Not ready yet: dsg, gecko, " in text
    assert "(models.questions): cannot be reached" in text


@pytest.mark.parametrize("role", ["vqa", "questions", "reward"])
async def test_without_a_metric_a_server_that_is_away_is_named(role, tmp_path, caplog):
    """Also where metrics lack more than this model; the log has the reason, too."""
    with socket.create_server(("127.0.0.1", 0)) as closed:
        port = closed.getsockname()[1]
    text = await last_lines(tmp_path, f"{role}=openai:m@http://127.0.0.1:{port}")

    name = "reward_model" if role == "reward" else role
    [line] = [line for line in text.splitlines() if line.startswith("Not ready yet: ")]
    assert "and no metric is ready yet" in text
    assert f"models.{name}" in line
    assert "cannot be reached (ConnectError)." in line
    warned = [record.getMessage() for record in caplog.records if record.name == "scoregate.remote"]
    assert [f"models.{name} cannot be reached (ConnectError)"] == warned


@pytest.mark.parametrize("name", ["demo:nli", "demo:question_llm"])
async def test_without_a_metric_no_request_is_shown(name, tmp_path):
    """But the arguments that add one."""
    text = await last_lines(tmp_path, name)

    assert f"Serving {URL}, and no metric is ready yet.\n" in text
    assert "Missing for clip_i, clipscore, refclipscore: --model " in text
    assert "curl" not in text
