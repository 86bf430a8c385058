"""`Item.metrics`: an item's own metrics in place of those of the request."""

import pytest

from scoregate import Item, ScoregateError
from scoregate.data.rows import Row
from scoregate.errors import BadResultsError, InputError, ModelChangedError
from scoregate.runs.plan import Plan
from tests.support.answers import request_of, scored
from tests.support.pictures import png

ITEMS = [
    Item(prompt="a sign", image=png(), metrics=["ocr"]),
    Item(prompt="two cats", image=png(), metrics="geneval"),
    Item(prompt="a dog", image=png()),
]
MODELS = {"ocr": {"ocr": "pp@1"}, "geneval": {"detector": "m2f@1"}, "vqascore": {"vqa": "clip@1"}}


def modelled(request, models=MODELS):
    """An answer with the models of the first item's metrics, as those of the request."""
    [item] = request_of(request)["items"]
    return scored(request, models=models[item.get("metrics", ["vqascore"])[0]])


def test_each_item_is_sent_with_its_own_and_has_results_for_these(answered):
    """A single name is a list of one, and an item without any has those of the call."""
    sent = []

    def answer(request):
        sent.append(request_of(request))
        return scored(request)

    report = answered(answer).score_items(ITEMS, ["vqascore"])

    assert [["ocr"], ["geneval"], None] == [item.get("metrics") for item in sent[0]["items"]]
    assert [{"ocr": 0.5}, {"geneval": 0.5}, {"vqascore": 0.5}] == [result.scores for result in report]


def test_an_answer_without_an_items_own_metric_is_wrong(answered):
    """It has the request's instead."""
    client = answered(lambda request: scored(request, entry={"scores": {"vqascore": 0.5}}))

    with pytest.raises(ScoregateError, match="item 0 has neither a number nor an error for ocr"):
        client.score_items(ITEMS)


@pytest.mark.parametrize("call", ["score_items", "score_many"])
def test_a_picture_that_cannot_be_read_is_an_error_under_the_items_own(answered, call):
    """Nobody asked for the others."""
    items = [Item(prompt="a sign", image="nowhere.png", metrics=["ocr"]), *ITEMS]

    results = list(getattr(answered(scored), call)(items))

    assert ["ocr"] == list(results[0].errors)


def test_requests_of_items_with_different_models_are_no_change(answered):
    """Their metrics use others; but a model of one name must stay the same."""
    assert 3 == len(list(answered(modelled).score_many(ITEMS, batch_size=1, concurrency=1)))

    asked = iter([MODELS, MODELS | {"ocr": {"ocr": "pp@2"}}])
    client = answered(lambda request: modelled(request, next(asked)))
    with pytest.raises(ModelChangedError, match=r"item 1: ocr was pp@1 and is pp@2, and"):
        list(client.score_many([ITEMS[0], ITEMS[0]], batch_size=1, concurrency=1))


def test_a_model_of_a_row_changed_and_those_of_other_rows_did_not():
    """As in `score_many`: the error names that model alone."""
    plan = Plan(["ocr", "geneval"], {"ocr": "pp@1", "detector": "m2f@1"}, {}, mixed=True)
    with pytest.raises(InputError, match=r"other models now: ocr was pp@1 and is pp@2\. Name"):
        plan.line(Row(1, metrics=["ocr"]), {"scores": {"ocr": 0.5}, "models": {"ocr": "pp@2"}}, {})


def test_a_run_goes_on_with_the_models_of_all_its_lines(answered, tmp_path):
    """The second line's model is compared, too."""
    path, other = tmp_path / "results.jsonl", MODELS | {"geneval": {"detector": "m2f@2"}}
    list(answered(modelled).score_many(ITEMS[:2], batch_size=1, concurrency=1, resume=path))

    more = [*ITEMS[:2], ITEMS[1]]
    with pytest.raises(ModelChangedError, match="detector was m2f@1 and is m2f@2"):
        list(
            answered(lambda one: modelled(one, other)).score_many(
                more, batch_size=1, concurrency=1, resume=path
            )
        )
    with pytest.raises(BadResultsError, match="item 0 is another one"):
        list(
            answered(modelled).score_many([Item(prompt="a sign", image=png(), metrics=["dsg"])], resume=path)
        )


def test_a_run_whose_first_own_metrics_come_late_goes_on_without_a_change(answered, tmp_path):
    """The models of all lines are known before the items are read."""
    path = tmp_path / "results.jsonl"
    items = [*(Item(prompt=f"a dog {number}", image=png()) for number in range(6)), ITEMS[0]]
    first, again = (
        list(answered(modelled).score_many(items, batch_size=1, concurrency=1, resume=path)) for _ in range(2)
    )

    assert [each.scores for each in first] == [each.scores for each in again]
