"""A model that is replaced during a run: results carry the models of their answers, runs don't mix them."""

import json

import pytest

from scoregate.errors import BadResultsError, ModelChangedError
from tests.support.answers import scored
from tests.support.pictures import png

PAIRS = [(png(), f"a square {number}") for number in range(9)]


@pytest.fixture
def replaced(answered):
    """A client whose service has another model from its third answer on, or from the first one on."""

    def make(after=2):
        asked = iter(range(100))

        def answer(request):
            return scored(request, models={"vqa": "clip@old" if next(asked) < after else "clip@new"})

        return answered(answer)

    return make


def taken(results):
    """The models of each result, until the run ends by itself or with the change."""
    found = []
    with pytest.raises(ModelChangedError) as raised:
        found.extend(result.models["vqa"] for result in results)
    return found, raised.value


def test_a_run_ends_where_other_models_answer(replaced):
    """After the results of the models before."""
    found, error = taken(replaced().score_many(PAIRS, batch_size=2, concurrency=1))

    assert ["clip@old"] * 4 == found
    assert "item 4: vqa was clip@old and is clip@new" in error.detail
    assert "allow_model_change=True" in error.detail


def test_it_goes_on_where_it_may(replaced):
    """Each result says which models it is from."""
    results = list(replaced().score_many(PAIRS, batch_size=2, concurrency=1, allow_model_change=True))

    assert ["clip@old"] * 4 + ["clip@new"] * 5 == [result.models["vqa"] for result in results]


def test_the_file_has_the_models_of_each_line(replaced, tmp_path):
    """A run that goes on with it compares with them, and ends before a line is added."""
    path = tmp_path / "results.jsonl"
    taken(replaced().score_many(PAIRS, batch_size=2, concurrency=1, resume=path))
    held = path.read_text()
    found, _ = taken(replaced(0).score_many(PAIRS, batch_size=2, concurrency=1, resume=path))

    assert ["clip@old"] * 4 == [json.loads(line)["models"]["vqa"] for line in held.splitlines()]
    assert ["clip@old"] * 4 == found
    assert held == path.read_text()
    asked = replaced(0).score_many(PAIRS, batch_size=2, concurrency=1, resume=path, allow_model_change=True)
    assert ["clip@old"] * 4 + ["clip@new"] * 5 == [result.models["vqa"] for result in asked]


def test_an_item_without_a_score_is_from_no_model(answered):
    """It cannot be sent; the others are of one model."""
    client = answered(lambda request: scored(request, models={"vqa": "clip@old"}))
    results = list(client.score_many([PAIRS[0], (None, "a square"), PAIRS[1]], batch_size=1))

    assert ["clip@old", None, "clip@old"] == [result.models.get("vqa") for result in results]


LINE = {
    "index": 0,
    "key": "k",
    "sha256": None,
    "id": None,
    "scores": {"vqascore": 0.5},
    "errors": {},
    "details": {},
    "cache": {},
    "models": {},
    "warnings": [],
    "request_id": "r",
}
TAMPERED = {
    "a list of errors": {"errors": ["x"]},
    "an error that is a text": {"errors": {"vqascore": "x"}},
    "a list of scores": {"scores": [0.5]},
    "a score beyond all floats": {"scores": {"vqascore": 10**400}},
    "a score that is a text": {"scores": {"vqascore": "0.5"}},
    "NaN": {"scores": {"vqascore": float("nan")}},
    "an index that is a list": {"index": [0]},
    "a text for the details": {"details": "x"},
    "a number for the models": {"models": 5},
    "a warning that is a text": {"warnings": ["x"]},
    "a warning of numbers": {"warnings": [{"code": 1, "metric": 2, "text": 3}]},
}


@pytest.mark.parametrize("change", TAMPERED.values(), ids=TAMPERED)
def test_a_tampered_file_is_an_error_of_the_tree(answered, tmp_path, change):
    """It names the line, nothing is asked, and the file stays as it is."""
    path = tmp_path / "results.jsonl"
    path.write_text(json.dumps(LINE | change) + "\n")
    before = path.read_bytes()

    with pytest.raises(BadResultsError, match=r"results.jsonl, line 1: not a line of score_many"):
        list(answered(lambda request: None).score_many(PAIRS, resume=path))
    assert before == path.read_bytes()


@pytest.mark.parametrize("text", ["[" * 100_000, "[]", "5", '"x"', "null", "1" * 5000, "\x00"])
def test_what_is_no_line_is_an_error_of_the_tree(answered, tmp_path, text):
    """However deep or long it is."""
    path = tmp_path / "results.jsonl"
    path.write_text(text + "\n")

    with pytest.raises(BadResultsError, match="line 1: not a line of score_many"):
        list(answered(lambda request: None).score_many(PAIRS, resume=path))


def test_a_line_that_lacks_what_was_asked_is_an_error_of_the_tree(answered, tmp_path):
    """The score of the item was taken out."""
    path = tmp_path / "results.jsonl"
    list(answered(scored).score_many(PAIRS[:1], resume=path))
    line = json.loads(path.read_text()) | {"scores": {}}
    path.write_text(json.dumps(line) + "\n")

    with pytest.raises(BadResultsError, match="item 0 has no vqascore"):
        list(answered(scored).score_many(PAIRS[:1], resume=path))
