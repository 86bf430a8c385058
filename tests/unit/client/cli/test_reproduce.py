"""The manifest beside results, and `scoregate reproduce`."""

import json

import pytest

from tests.support.pictures import png
from tests.unit.client.cli.served import ROWS, Service, metric

COMMIT = {"service": {"version": "1", "commit": "abc"}, "libraries": {"torch": "2"}}
BESIDE = "out.jsonl.manifest.json"


@pytest.fixture
def service():
    """A service that says what it consists of."""
    made = Service("clip@1", metrics={"vqascore": metric(), "dsg": metric() | {"style": "dsg"}})
    made.facts = json.loads(json.dumps(COMMIT))
    return made


@pytest.fixture
def batch(command, service, tmp_path):
    """The manifest that the command wrote."""

    def batch(*arguments):
        command(service, "batch", "rows.jsonl", "-o", "out.jsonl", *arguments)
        return json.loads((tmp_path / BESIDE).read_text("utf-8"))

    return batch


@pytest.fixture
def reproduce(command, service):
    """The status, and what the command prints for programs."""

    def reproduce(*arguments):
        status, out, _ = command(service, "reproduce", BESIDE, "--json", *arguments)
        return status, json.loads(out)

    return reproduce


def test_a_manifest_says_what_was_scored_and_with_what(command, service, tmp_path):
    """Paths are relative to it, so that all can be moved together."""
    (tmp_path / "values").write_text("Yes\nNo\n", "utf-8")
    (tmp_path / "runs").mkdir()
    sweep = ("--sweep", "vqascore.answer=values")
    command(service, "batch", "rows.jsonl", "-o", "runs/out.jsonl", "--option", "vqascore.x=1", *sweep)
    found = json.loads((tmp_path / "runs" / BESIDE).read_text("utf-8"))
    [run] = found["runs"]

    assert ("../rows.jsonl", "out.jsonl") == (found["dataset"]["path"], found["results"])
    assert 64 == len(found["dataset"]["sha256"])
    assert ["vqascore.answer=../values"] == found["dataset"]["sweep"]
    assert (["vqascore"], {"vqascore": {"x": 1}}) == (found["metrics"], found["options"])
    assert COMMIT == {name: run[name] for name in COMMIT}
    assert {"vqa": {"model": "clip@1", "device": "cpu"}} == run["models"]
    assert 2 * ROWS == run["requested"]
    assert 0 == command(service, "reproduce", f"runs/{BESIDE}")[0]


def test_each_run_that_requests_something_is_noted(batch, tmp_path):
    """A run that finds everything is not."""
    batch()
    assert 1 == len(batch()["runs"])
    with (tmp_path / "rows.jsonl").open("a") as file:
        file.write('{"image": "p.png", "prompt": "new"}\n')

    assert [ROWS, 1] == [run["requested"] for run in batch()["runs"]]


def test_a_report_writes_a_manifest_beside_its_results(command, service, tmp_path):
    """It is reproduced like that of `batch`."""
    command(service, "report", "rows.jsonl", "-o", "page.html")

    assert (0, "") == command(service, "reproduce", "page.results.jsonl.manifest.json")[::2]


def test_equal_scores_are_status_0(batch, reproduce, service):
    """Also when other libraries gave them, which is shown."""
    batch()
    service.facts["libraries"]["torch"] = "3"
    status, found = reproduce()

    assert 0 == status
    assert {"compared": ROWS, "different": 0, "largest": 0.0} == found["metrics"]["vqascore"]
    assert {"libraries.torch": {"then": "2", "now": "3"}} == found["provenance"]


def test_other_weights_of_a_composite_are_shown(batch, reproduce, service):
    """They change its scores though all models stay."""
    service.metrics["mix"] = metric() | {"parts": {"dsg": {"weight": 0.5, "options": {}}}}
    batch("-m", "mix")
    service.metrics["mix"]["parts"]["dsg"]["weight"] = 0.6

    assert {"composites.mix.dsg.weight": {"then": "0.5", "now": "0.6"}} == reproduce()[1]["provenance"]


@pytest.mark.parametrize(("arguments", "status"), [((), 1), (("--tolerance", "0.2"), 0)])
def test_a_score_that_differs_is_status_1(batch, reproduce, service, arguments, status):
    """By more than the tolerance; the row, its metric and both scores are printed."""
    batch()
    service.score = 0.625
    found = reproduce(*arguments)

    assert status == found[0]
    assert 0.125 == found[1]["metrics"]["vqascore"]["largest"]
    if status:
        expected = {"row": 1, "image": "p.png", "metric": "vqascore", "then": 0.5, "now": 0.625}
        assert (ROWS, expected) == (len(found[1]["rows"]), found[1]["rows"][0])


def test_the_tables_name_what_differs(batch, command, service):
    """Ten rows of it, and how many more there are."""
    batch()
    service.score, service.labels = 0.625, ["clip@2"]
    status, out, _ = command(service, "reproduce", BESIDE)

    assert 1 == status
    assert ["models.vqa.model", "clip@1", "clip@2"] in [line.split() for line in out.splitlines()]
    assert "row 1, p.png: vqascore was 0.5 and is 0.625" in out
    assert f"and {ROWS - 10} more" in out


def test_a_picture_that_changed_is_named(batch, reproduce, service, tmp_path):
    """Beside its scores."""
    batch()
    (tmp_path / "p.png").write_bytes(png("blue"))
    service.score = 0.625
    _, found = reproduce()

    assert {"picture_changed"} == {row["error"] for row in found["rows"]}


def test_a_row_that_is_gone_is_status_1(batch, reproduce, tmp_path):
    """The others are compared, and a changed data set is shown."""
    batch()
    table = tmp_path / "rows.jsonl"
    table.write_text("".join(table.read_text("utf-8").splitlines(keepends=True)[:-1]), "utf-8")
    status, found = reproduce()

    assert (1, 1) == (status, found["lost"])
    assert ROWS - 1 == found["metrics"]["vqascore"]["compared"]
    assert ["dataset"] == list(found["provenance"])


def test_a_row_that_is_there_twice_is_reproduced_twice(batch, reproduce, tmp_path):
    """Both rows have one key, and neither is lost."""
    table = tmp_path / "rows.jsonl"
    table.write_text(table.read_text("utf-8").splitlines(keepends=True)[0] * 2, "utf-8")
    batch()
    status, found = reproduce()

    assert (0, 0) == (status, found["lost"])
    assert 2 == found["metrics"]["vqascore"]["compared"]


def test_question_sets_are_those_of_then(batch, reproduce, service):
    """A part of a composite cannot be pinned."""
    service.entry = {"question_sets": {"dsg": "sha256:1", "mix.dsg": "sha256:2"}}
    batch("-m", "dsg")
    service.sent.clear()
    reproduce()

    assert [{"dsg": {"question_set": "sha256:1"}}] * ROWS == [
        item["options"] for sent in service.sent for item in sent["items"]
    ]


QUESTIONS = [{"id": 1, "text": "Is there a cat?", "kind": "entity", "depends_on": [], "expected": "yes"}]
SET = {
    "prompt": "a cat",
    "style": "dsg",
    "id": "sha256:1",
    "questions": QUESTIONS,
    "provenance": {"llm": "x"},
}


@pytest.fixture
def asking(service, tmp_path):
    """The service with a stored set, and a data set of one row with its prompt."""
    row = {"image": "p.png", "prompt": "a cat"}
    (tmp_path / "rows.jsonl").write_text(json.dumps(row) + "\n", "utf-8")
    service.sets = {"sha256:1": {**SET, "unasked": ["cat"]}}
    service.entry = {"question_sets": {"dsg": "sha256:1"}}
    return service


def test_a_manifest_has_the_questions(batch, asking):
    """As `questions import` reads them, without a set that came with its row and is in no store."""
    asking.entry["question_sets"]["tifa"] = "sha256:2"
    found = batch("-m", "dsg")

    assert {"sha256:1": {**SET, "unasked": ["cat"]}} == found["question_sets"]
    asking.sets.clear()
    assert found["question_sets"] == batch("-m", "dsg")["question_sets"]


@pytest.mark.parametrize("pinned", [False, True])
def test_a_service_with_another_store_gets_the_questions(batch, reproduce, asking, tmp_path, pinned):
    """Also if the row named the set; a service with the set gets its id."""
    if pinned:
        row = {"image": "p.png", "prompt": "a cat", "question_set": "sha256:1"}
        (tmp_path / "rows.jsonl").write_text(json.dumps(row) + "\n", "utf-8")
    batch("-m", "dsg")
    for sets, sent in ((dict(asking.sets), "sha256:1"), ({}, QUESTIONS)):
        asking.sets = sets
        asking.sent.clear()

        assert 0 == reproduce()[0]
        assert {"dsg": {"question_set": sent}} == asking.sent[0]["items"][0]["options"]


def test_a_missing_set_of_a_part_is_told_with_the_command(batch, command, asking):
    """A request can name no set for it."""
    asking.metrics["mix"] = metric() | {"parts": {"dsg": {"weight": 1, "options": {}}}}
    asking.entry = {"question_sets": {"mix.dsg": "sha256:1"}}
    batch("-m", "mix")
    assert "import" not in command(asking, "reproduce", BESIDE)[2]
    asking.sets = {}
    _, _, said = command(asking, "reproduce", BESIDE)

    assert "of mix.dsg," in said
    commands = (
        f"jq -c '.question_sets[]' {BESIDE} > sets.jsonl && scoregate-server questions import sets.jsonl"
    )
    assert commands in said


def test_a_fault_after_the_scores_takes_none_of_them(batch, asking):
    """The manifest lacks the sets, which the next run adds."""
    sets, asking.sets = asking.sets, {"sha256:1": "no set"}
    assert "question_sets" not in batch("-m", "dsg")
    asking.sets = sets

    assert ["sha256:1"] == list(batch("-m", "dsg")["question_sets"])


def test_a_run_has_all_options_with_their_defaults(batch, reproduce, service):
    """Those of the service's answers; a default that changed is shown."""
    service.more["provenance"] = {"options": {"vqascore": {"answer": "Yes", "x": 1}}}
    found = batch("--option", "vqascore.x=1")

    assert ({"vqascore": {"x": 1}}, 1) == (found["options"], len(found["runs"]))
    assert {"vqascore": {"answer": "Yes", "x": 1}} == found["runs"][0]["options"]
    service.more["provenance"] = {"options": {"vqascore": {"answer": "yes", "x": 1}}}
    assert {"options.vqascore.answer": {"then": "Yes", "now": "yes"}} == reproduce()[1]["provenance"]


def test_a_manifest_without_defaults_has_no_difference_of_them(batch, reproduce, service):
    """It is of an earlier version of the command."""
    batch()
    service.more["provenance"] = {"options": {"vqascore": {"answer": "Yes"}}}

    assert {} == reproduce()[1]["provenance"]


def test_results_without_scores_reproduce_nothing(batch, command, service, tmp_path):
    """Status 1, and one line."""
    (tmp_path / "p.png").write_bytes(b"text")
    batch()
    status, _, err = command(service, "reproduce", BESIDE)

    assert 1 == status
    assert "nothing was compared" in err.splitlines()[-1]


@pytest.mark.parametrize("text", ["", "[]", '{"manifest": 1}', '{"manifest": 2, "runs": []}'])
def test_another_file_is_no_manifest(command, service, tmp_path, text):
    """Status 2, for `reproduce` and for a run that would replace it."""
    (tmp_path / BESIDE).write_text(text, "utf-8")
    for arguments in (("reproduce", BESIDE), ("batch", "rows.jsonl", "-o", "out.jsonl")):
        status, _, err = command(service, *arguments)

        assert (2, []) == (status, service.sent)
        [line] = err.splitlines()
        assert "this is no manifest of `scoregate batch` or `report`" in line

    assert text == (tmp_path / BESIDE).read_text("utf-8")
