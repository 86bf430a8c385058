"""`batch` and `report` while a model is replaced: each line says which models gave its scores."""

import json

import pytest

from tests.unit.client.cli.served import ROWS, Service, lines, metric

BATCH = ("batch", "rows.jsonl", "-o", "out.jsonl", "--concurrency", "1")
METRICS = {"vqascore": metric()}
ITEMS = 16


def replaced():
    """A service whose second answer is another model's."""
    return Service("clip@old", "clip@new", metrics=METRICS)


def labels(tmp_path, name="out.jsonl"):
    """The models of the lines, in order."""
    return [line["models"]["vqa"] for line in lines(tmp_path / name)]


def test_a_change_of_model_ends_the_run(command, tmp_path):
    """With the way to go on; what the old model scored is kept, and nothing else."""
    status, _, said = command(replaced(), *BATCH)

    assert 2 == status
    assert "vqa was clip@old and is clip@new" in said
    assert "--allow-model-change" in said
    assert ["clip@old"] * ITEMS == labels(tmp_path)


def test_the_next_run_refuses_at_its_start(command, tmp_path):
    """Nothing is asked; the message has the same way to go on."""
    command(replaced(), *BATCH)
    service = Service("clip@new", metrics=METRICS)
    status, _, said = command(service, *BATCH)

    assert (2, []) == (status, service.sent)
    assert "--allow-model-change" in said
    assert ["clip@old"] * ITEMS == labels(tmp_path)


@pytest.mark.parametrize("out", ["out.jsonl", "out.parquet", "out.csv"])
def test_it_goes_on_where_it_may_and_labels_line_by_line(command, tmp_path, out):
    """In one run, and in the run after one that was ended; what has a score is not asked again."""
    batch = ("batch", "rows.jsonl", "-o", out, "--concurrency", "1")
    command(replaced(), *batch)
    service = Service("clip@new", metrics=METRICS)
    status, _, _ = command(service, *batch, "--allow-model-change")
    command(service, "batch", "rows.jsonl", "-o", "copy.jsonl", "--allow-model-change")
    whole = command(replaced(), "batch", "rows.jsonl", "-o", "one.jsonl", "--allow-model-change")

    assert 0 == status == whole[0]
    assert ["clip@new"] * ROWS == labels(tmp_path, "copy.jsonl")
    assert {"clip@old", "clip@new"} == set(labels(tmp_path, "one.jsonl"))
    if out.endswith(".jsonl"):
        assert ["clip@old"] * ITEMS + ["clip@new"] * (ROWS - ITEMS) == labels(tmp_path)


def test_a_score_of_another_model_does_not_stand_beside_a_new_one(command, tmp_path):
    """A row whose second metric had no score is the new model's alone after it was asked again."""
    metrics = {"vqascore": metric(), "dsg": metric()}
    both = (*BATCH, "-m", "vqascore", "-m", "dsg", "--allow-model-change")
    command(Service("clip@old", metrics=metrics), *both)
    held = lines(tmp_path / "out.jsonl")
    held[0] |= {"scores": {"vqascore": 0.25}, "errors": {"dsg": {"code": "timeout", "detail": "x"}}}
    (tmp_path / "out.jsonl").write_text("".join(json.dumps(line) + "\n" for line in held))
    command(Service("clip@new", metrics=metrics), *both)
    first, second, *_ = lines(tmp_path / "out.jsonl")

    assert ({"vqascore": 0.5, "dsg": 0.5}, "clip@new") == (first["scores"], first["models"]["vqa"])
    assert "clip@old" == second["models"]["vqa"]


def test_the_page_of_a_report_counts_the_pictures_of_each_model(command, tmp_path):
    """Online and from results that are there; without the flag neither is drawn."""
    report = ("report", "rows.jsonl", "-o", "page.html", "--concurrency", "1")
    status, _, said = command(replaced(), *report)
    assert 2 == status
    assert "--allow-model-change" in said
    assert not (tmp_path / "page.html").exists()
    assert 0 == command(replaced(), *report, "--allow-model-change", "--results", "both.jsonl")[0]
    counted = "vqa: clip@old (16 pictures), vqa: clip@new (24 pictures)"
    assert counted in (tmp_path / "page.html").read_text("utf-8")
    again = ("report", "rows.jsonl", "-o", "again.html", "--results", "both.jsonl", "--offline")
    assert 2 == command(replaced(), *again)[0]
    assert 0 == command(replaced(), *again, "--allow-model-change")[0]
    assert counted in (tmp_path / "again.html").read_text("utf-8")


def test_calibrate_says_that_scores_are_of_several_models(command, tmp_path):
    """A threshold over both means little."""
    command(replaced(), *BATCH, "--allow-model-change")
    held = lines(tmp_path / "out.jsonl")
    for number, line in enumerate(held):
        line["scores"]["vqascore"] = number / ROWS
    (tmp_path / "out.jsonl").write_text("".join(json.dumps(line) + "\n" for line in held))
    _, _, said = command(replaced(), "calibrate", "out.jsonl")

    assert "the scores are of 2 sets of models, and not comparable" in said


def test_a_label_of_the_service_is_taken_as_it_is(command, tmp_path):
    """Where `GET /models` tells how answers call a model."""

    class Labelled(Service):
        def __call__(self, request):
            answer = super().__call__(request)
            if request.url.path == "/models":
                content = answer.json()
                content["models"][0] |= {"id": "clip", "revision": "1", "label": "clip@1+recipe"}
                answer = type(answer)(200, json=content)
            return answer

    assert 0 == command(Labelled("clip@1+recipe", metrics=METRICS), *BATCH)[0]
    assert ["clip@1+recipe"] * ROWS == labels(tmp_path)


TAMPERED = {
    "a list of errors": {"errors": ["x"]},
    "an error that is a text": {"errors": {"vqascore": "x"}},
    "a list of models": {"models": ["x"]},
    "a model that is a number": {"models": {"vqa": 5}},
    "a list of columns": {"columns": ["x"]},
    "a column of lists": {"columns": {"good": [[]]}},
    "a text for the details": {"details": "x"},
    "a score beyond all floats": {"scores": {"vqascore": 10**400}},
    "a row that is a text": {"row": "x"},
    "a prompt that is a number": {"prompt": 5},
    "a number for the warnings": {"warnings": 5},
    "a warning that is a number": {"warnings": [5]},
    "a warning without a text": {"warnings": [{"code": "x", "metric": None}]},
    "a number for what is lower": {"lower_is_better": 5},
}


@pytest.mark.parametrize("change", TAMPERED.values(), ids=TAMPERED)
def test_a_tampered_line_ends_with_one_line(command, tmp_path, change):
    """In `batch`, and in a report that asks nobody; no traceback, and the file stays as it is."""
    command(Service("clip@old", metrics=METRICS), *BATCH)
    held = lines(tmp_path / "out.jsonl")
    held[3] |= change
    (tmp_path / "out.jsonl").write_text("".join(json.dumps(line) + "\n" for line in held))
    before = (tmp_path / "out.jsonl").read_bytes()
    offline = ("report", "rows.jsonl", "-o", "page.html", "--results", "out.jsonl", "--offline")
    for arguments in (BATCH, offline):
        status, _, said = command(Service("clip@old", metrics=METRICS), *arguments)
        assert 2 == status
        assert said.startswith("scoregate: out.jsonl, line 4")
        assert 1 == said.count("\n")
    assert before == (tmp_path / "out.jsonl").read_bytes()
