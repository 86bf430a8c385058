"""The client, asking a real service around fakes."""

import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest

from scoregate import Client, Frames, Item
from scoregate.errors import ImageUndecodableError, InvalidError, UnknownMetricError, UnknownQuestionSetError
from tests.support.fake_service import MODELS
from tests.support.pictures import png

NOISE = np.random.default_rng(0).integers(0, 255, (8, 16, 16, 3), np.uint8)


def test_a_score_says_what_it_is_and_where_from(client):
    """A frozen value, which counts as its number."""
    score = client.score(png(), "a red square", explain=True)

    assert 0 <= score.value == float(score) <= 1
    assert ("vqascore", "a red square") == (score.metric, score.prompt)
    assert "fake-vqa@1" == score.model
    assert score.value == score.details["likelihood"]
    assert score.request_id
    with pytest.raises(AttributeError):
        score.value = 1.0


def test_the_same_score_comes_for_the_same_file_in_any_form(client, tmp_path):
    """A path and its bytes."""
    (tmp_path / "p.png").write_bytes(png())
    forms = [png(), tmp_path / "p.png", str(tmp_path / "p.png"), (tmp_path / "p.png").open("rb")]
    scores = {client.score(form, "a red square").value for form in forms}
    forms[-1].close()

    assert 1 == len(scores)


def test_items_keep_their_order_ids_and_options(client):
    """With every metric's score, and a model for each role."""
    own = {"vqascore": {"output": "logit"}}
    items = [Item(prompt="a red square", image=png(), id="a", options=own), (png(), "a red square")]
    report = client.score_items(items, ["vqascore", "clipscore", "dsg"], explain=True)

    assert [("a", 0), (None, 1)] == [(result.id, result.index) for result in report]
    assert [report[0].details["vqascore"]["logit"]] == [report[0].score("vqascore")]
    assert report[0].scores["clipscore"] == report[1].scores["clipscore"]
    assert {"vqa", "clip", "questions"} == report.models.keys()
    assert not report.partial
    assert report.raw["request_id"] == report.request_id
    report.raise_for_errors()


def test_references_and_a_source_go_with_their_item(client, tmp_path):
    """In any form, once for all items that name them; one that cannot be read is named."""
    (tmp_path / "p.png").write_bytes(png("blue"))
    editing, anchored = ({"judge": {"rubric": name}} for name in ("editing", "anchored_style"))
    items = [
        Item(prompt="a", image=png(), options=editing, source=NOISE[0]),
        Item(prompt="a", image=png(), options=editing, source=NOISE[1]),
        Item(prompt="a", image=png(), options=anchored, references=[tmp_path / "p.png", NOISE[0]]),
        Item(prompt="a", image=png(), options=anchored, references=[png("blue"), NOISE[0]]),
    ]
    report = client.score_items(items, ["judge"])
    first, second, *same = (result.score("judge") for result in report)

    assert first != second
    assert same[0] == same[1]
    [result] = client.score_many([Item(prompt="a", image=png(), references=[png(), "gone.png"])], ["judge"])
    assert "references/1: " in str(result.errors["judge"])
    with pytest.raises(InvalidError) as refusal:
        client.score_items([Item(prompt="a", image=png(), source=png())])
    assert ["/items/0/source"] == [fault["pointer"] for fault in refusal.value.errors]


def test_a_partial_failure_is_not_hidden(client):
    """The broken picture's error is of the class of its code, and the other one has its score."""
    report = client.score_items([(png(), "x"), (png()[:40], "y")])

    assert report.partial
    assert 0 <= report[0].score("vqascore") <= 1
    assert {} == report[1].scores
    assert isinstance(report[1].errors["vqascore"], ImageUndecodableError)
    for fails in (report.raise_for_errors, lambda: report[1].score("vqascore")):
        with pytest.raises(ImageUndecodableError, match=r"^item 1, vqascore: "):
            fails()
    with pytest.raises(ImageUndecodableError):
        client.score(png()[:40], "y")


def test_a_metric_that_was_not_asked_for_has_no_score(client):
    """Which is no error of the service."""
    [result] = client.score_items([(png(), "x")])

    with pytest.raises(KeyError):
        result.score("clipscore")


def test_frames_are_one_item(client):
    """As many as there are in the array."""
    score = client.score(Frames(NOISE[:3]), "x", explain=True)

    assert 3 == score.details["frames_used"]


def test_a_mistake_in_the_request_is_named(client):
    """With the place, the status, and the request's name in the log."""
    with pytest.raises(UnknownMetricError, match="/metrics/0") as raised:
        client.score(png(), "x", "beauty")

    assert 422 == raised.value.status
    assert raised.value.request_id
    assert "/metrics/0" == raised.value.errors[0]["pointer"]


def test_question_sets_can_be_written_and_found_again(client):
    """The second time they are there; an id that is not there is an error."""
    [first] = client.questions("a red cat")
    again, other = client.questions(["a red cat", "a green dog"], "dsg", priority="bulk")

    assert first.id == again.id != other.id
    assert again.cached
    assert "a red cat" in first.questions[0]["text"]
    assert first.questions == client.question_set(first.id).questions
    with pytest.raises(UnknownQuestionSetError):
        client.question_set("sha256:" + "0" * 64)


def test_the_service_tells_of_itself(client):
    """Its models, its health, and whether it is ready."""
    assert MODELS == {model["name"] for model in client.models()["models"]}
    assert "vqascore" in client.health()["rewards"]
    assert (True, True) == (client.ready()[0], client.ready()[1]["ready"])


def test_threads_share_a_client(client):
    """Each gets the score of its own picture."""
    pairs = [(NOISE[number % 8], f"a square {number}") for number in range(64)]
    alone = [client.score(*pair).value for pair in pairs]
    with ThreadPoolExecutor(16) as threads:
        together = list(threads.map(lambda pair: client.score(*pair).value, pairs))

    assert alone == together
    assert len(set(alone)) > 60


def test_a_client_that_was_closed_opens_again(client):
    """So that nobody has to know who closes it last."""
    client.close()
    client.close()

    assert client.health()


def test_a_process_ends_although_nobody_closed_its_client(service):
    """Without a word on stderr."""
    code = f"import scoregate; client = scoregate.Client({service!r}); print(client.ready()[0])"
    done = subprocess.run(
        [sys.executable, "-W", "always", "-c", code], capture_output=True, text=True, timeout=60
    )

    assert (0, "True\n", "") == (done.returncode, done.stdout, done.stderr)


def test_the_environment_s_proxies_are_not_asked(service, monkeypatch):
    """A proxy for the internet would not find a service in the same house."""
    monkeypatch.setenv("HTTP_PROXY", "http://127.0.0.1:9")
    monkeypatch.setenv("ALL_PROXY", "http://127.0.0.1:9")
    with Client(service, retries=0) as client:
        assert "ok" == client.health()["status"]


def test_a_matrix_over_http_has_the_scores_of_the_pairs(client):
    """A row for each picture, a column for each prompt."""
    pictures, prompts = [png("red"), png("lime")], ["a red square", "a green square", "a dog"]
    singles = [[client.score(picture, prompt).value for prompt in prompts] for picture in pictures]

    assert singles == client.matrix(pictures, prompts).tolist()


def test_a_stream_has_the_results_of_one_answer(fake_service):
    """In any order, over a connection that is used again."""
    items = [
        Item(prompt=f"a red square {number}", image=png(), metrics=["vqascore", "dsg"][: 1 + number % 2])
        for number in range(6)
    ]
    with Client(fake_service.url) as client:
        whole = client.score_items(items)
        streamed = sorted(client.stream(items), key=lambda result: result.index)
        again = list(client.stream(items[:1]))

    assert [result.scores for result in whole] == [result.scores for result in streamed]
    assert [0] == [result.index for result in again]
