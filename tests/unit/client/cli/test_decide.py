"""`scoregate decide`: a table, JSON, and whether all pictures are accepted as the status."""

import json
from pathlib import Path

import httpx2 as httpx
import pytest

from tests.support.answers import problem, request_of
from tests.support.pictures import png
from tests.unit.client.decisions.test_decide import answer_of, decided

DECIDE = ("decide", "-p", "a cat")


@pytest.fixture(autouse=True)
def broken(tmp_path):
    """A file that is no picture, beside the command's own picture."""
    (tmp_path / "q.png").write_bytes(png("blue"))
    (tmp_path / "broken.png").write_bytes(b"")


def test_the_status_says_whether_all_pictures_are_accepted(command):
    """A file that is no picture is decided by the policy, and named."""
    assert (0, "") == command(decided, *DECIDE, "p.png", "q.png")[::2]
    status, out, err = command(decided, *DECIDE, "p.png", "broken.png")

    assert 1 == status
    assert "PICTURE     DECISION  BECAUSE" == out.splitlines()[0]
    assert [["p.png", "accept"], ["broken.png", "reject"]] == [
        line.split()[:2] for line in out.splitlines()[1:]
    ]
    assert "broken.png: the file is empty" in err


def test_the_file_has_the_decisions_as_json(command):
    """With the name of each picture, and the id in the service's log."""
    command(decided, *DECIDE, "p.png", "-o", "out.json")
    [one] = json.loads(Path("out.json").read_text("utf-8"))

    assert ("p.png", "accept", {"vqascore": 0.9}) == (one["picture"], one["decision"], one["scores"])
    assert ("show@3f2a90c1d4e5", f"{0:032x}", ["ocr"]) == (one["policy"], one["decision_id"], one["skipped"])


def test_with_keep_the_pictures_are_one_group(command):
    """Of which the policy accepts so many."""
    sent = []

    def answer(request):
        sent.append(request_of(request))
        return decided(request)

    command(answer, *DECIDE, "p.png", "q.png", "--keep", "1", "--policy", "best", "--orient", "exif")

    [body] = sent
    assert "best" == body["policy"]
    assert [("pictures", "exif")] * 2 == [(item["group"], item["orient"]) for item in body["items"]]


def test_several_policies_are_columns(command):
    """The first decides the status."""

    def answer(request):
        content = answer_of(request)
        for entry in content["decisions"]:
            own = {name: entry.pop(name) for name in ("decision", "because", "skipped", "decision_id")}
            entry["policies"] = {"old": own, "new": {**own, "decision": "reject"}}
        return httpx.Response(200, json={**content, "policy": ["old@1", "new@2"]})

    both = ("--policy", "old", "--policy", "new")
    status, out, _ = command(answer, *DECIDE, "p.png", *both, "-o", "out.json")

    assert 0 == status
    assert ["PICTURE  old     new     BECAUSE", "p.png    accept  reject  vqascore 0.9 >= 0.5"] == (
        out.splitlines()
    )
    [one] = json.loads(Path("out.json").read_text("utf-8"))
    assert {"old": "old@1", "new": "new@2"} == {
        name: each["policy"] for name, each in one["policies"].items()
    }


def test_a_policy_that_the_service_has_not_is_a_wrong_call(command):
    """And so is a file of policies, which a service does not take."""
    assert 2 == command(lambda _: problem(422, "unknown_policy"), *DECIDE, "p.png", "--policy", "best")[0]
    status, _, err = command(decided, *DECIDE, "p.png", "--policy-file", "p.toml")

    assert 2 == status
    assert "--policy-file is for models of --local" in err
