"""docs/guides/score-a-folder.md: every picture gets one line, whatever stops the script in between."""

import json

import httpx
import pytest

from tests.support.pictures import png

PAGE, FILE = "score-a-folder.md", "score_folder.py"
COLOURS = ("red", "green", "blue", "white", "black")


@pytest.fixture
def folder(tmp_path):
    """Five pictures, a broken one, and their prompts."""
    folder = tmp_path / "pictures"
    folder.mkdir()
    for colour in COLOURS:
        (folder / f"{colour}.png").write_bytes(png(colour))
    (folder / "broken.png").write_bytes(png()[:40])
    rows = [{"file": f"{name}.png", "prompt": f"a {name} square"} for name in (*COLOURS, "broken")]
    (folder / "prompts.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows), "utf-8")
    return folder


@pytest.fixture
def run(module, folder, tmp_path, client):
    """The script, once; what it leaves in its file."""
    script, scores = module(PAGE, FILE), tmp_path / "scores.jsonl"

    def run():
        script.main(
            [str(folder / "prompts.jsonl"), str(scores), "--url", str(client.base_url), "--pictures=2"]
        )
        return [json.loads(line) for line in scores.read_text("utf-8").splitlines()]

    return run


def test_each_picture_gets_a_line_with_its_scores(run):
    """A broken picture gets its error, and no score."""
    *good, broken = run()

    assert [f"{colour}.png" for colour in COLOURS] == [line["file"] for line in good]
    assert all({"vqascore", "clipscore"} == line["scores"].keys() and not line["errors"] for line in good)
    assert {} == broken["scores"]
    assert {"image_undecodable"} == set(broken["errors"].values())
    assert {"vqa", "clip"} == good[0]["models"].keys()


def test_a_run_that_was_killed_goes_on_where_it_stopped(run, tmp_path):
    """Lines that are there stay as they are; half a line is scored again."""
    first, second, *_ = whole = run()
    first["scores"]["vqascore"] = 2.0  # which no model gave, so that it shows whether it stays
    half = json.dumps(second)[:30]
    (tmp_path / "scores.jsonl").write_text(f"{json.dumps(first)}\n{half}", "utf-8")

    assert [first, *whole[1:]] == run()
    assert [first, *whole[1:]] == run()


def test_what_may_pass_is_left_for_the_next_run(module):
    """A timeout gives no line; an error of the picture does."""
    script = module(PAGE, FILE)
    rows = [{"file": "a", "prompt": "x"}, {"file": "b", "prompt": "x"}]
    errors = [{"vqascore": {"code": code}} for code in ("deadline_exceeded", "image_undecodable")]
    answer = {"models": {}, "results": [{"scores": {}, "errors": each} for each in errors]}

    assert ["b"] == [line["file"] for line in script.lines(rows, answer)]


def test_a_busy_service_is_asked_again_when_it_said(module):
    """503 with Retry-After, then the scores; a 422 is not asked again."""
    script, asked = module(PAGE, FILE), []
    responses = [(503, {"Retry-After": "0"}), (429, {"Retry-After": "0"}), (200, {}), (422, {})]

    def respond(request):
        status, headers = responses[len(asked)]
        asked.append(status)
        return httpx.Response(status, headers=headers, json={"results": []})

    with httpx.Client(transport=httpx.MockTransport(respond), base_url="http://test") as client:
        assert {"results": []} == script.post(client, {}, {})
        with pytest.raises(httpx.HTTPStatusError):
            script.post(client, {}, {})

    assert [503, 429, 200, 422] == asked
