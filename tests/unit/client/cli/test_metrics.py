"""`scoregate metrics`, `scoregate models` without an action, and metrics with commas."""

import json

import pytest

from tests.unit.client.cli.served import Service, metric

METRICS = {
    "vqascore": metric() | {"options": {"output": "probability"}},
    "clip_i": metric() | {"needs": "references", "options": {}},
}
ABSENT = {"ocr": {"reason": "it needs a model in the role ocr", "options": {"text": None}}}


@pytest.fixture
def service():
    """One that serves two metrics of three."""
    service = Service("clip@1", metrics=METRICS)
    service.facts = {"absent": ABSENT}
    return service


def test_all_metrics_are_listed_with_what_each_needs(command, service):
    """Those that are not served, too, with the reason."""
    status, out, _ = command(service, "metrics")
    head, *rows = [line.split() for line in out.splitlines()]

    assert (0, ["METRIC", "SERVED", "NEEDS", "OPTIONS"]) == (status, head)
    assert ["vqascore", "yes", "vqa", "output"] == rows[0]
    assert ["clip_i", "yes", "vqa;", "references"] == rows[1]
    assert ["ocr", "no", *["it", "needs", "a", "model", "in", "the", "role", "ocr"], "text"] == rows[2]


def test_a_named_metric_has_its_options_with_defaults(command, service):
    """As JSON, as a request has them."""
    _, out, _ = command(service, "metrics", "vqascore", "ocr")

    assert [
        *("vqascore: by vqa", "OPTION  DEFAULT", 'output  "probability"', ""),
        *("ocr: not served: it needs a model in the role ocr", "OPTION  DEFAULT", "text    null"),
    ] == out.splitlines()


def test_a_metric_without_a_model_says_so(command):
    """Such as that of a package, which reads pixels alone."""
    service = Service("clip@1", metrics={"dimness": metric() | {"models": [], "options": {"gain": 1.0}}})
    service.facts = {"absent": {}}
    _, out, _ = command(service, "metrics", "dimness")

    assert "dimness: by no model" == out.splitlines()[0]


def test_json_says_of_each_metric_whether_it_is_served(command, service):
    """Beside the entry of `GET /models`."""
    _, out, _ = command(service, "metrics", "--json")
    found = json.loads(out)

    assert {"vqascore": True, "clip_i": True, "ocr": False} == {
        name: each["served"] for name, each in found.items()
    }
    assert {"served": False, **ABSENT["ocr"]} == found["ocr"]


def test_an_unknown_metric_lists_those_there_are(command, service):
    """With the status of a wrong call."""
    status, _, err = command(service, "metrics", "vqa_score")

    names = "did you mean vqascore? there are vqascore, clip_i, ocr"
    assert (2, f"scoregate: vqa_score: there is no such metric; {names}\n") == (status, err)


def test_models_without_an_action_are_listed(command, service):
    """Nothing is changed; an action needs a name."""
    status, out, _ = command(service, "models")

    assert 0 == status
    assert ["vqa", "vqa", "clip@1", "cpu", "yes"] == out.splitlines()[-1].split()
    assert (2, "") == command(service, "models", "offload")[:2]


@pytest.mark.parametrize("given", [("-m", "vqascore,dsg"), ("-m", "vqascore", "-m", "dsg, vqascore")])
def test_names_with_commas_are_several_metrics(command, service, tmp_path, given):
    """Each once, in `score` and in `batch`."""
    service.metrics = {"vqascore": metric(), "dsg": metric()}
    scored = command(service, "score", "p.png", "-p", "a cat", *given)
    command(service, "batch", "rows.jsonl", "-o", "out.jsonl", *given)

    assert 0 == scored[0]
    assert {("vqascore", "dsg")} == {tuple(sent["metrics"]) for sent in service.sent}
