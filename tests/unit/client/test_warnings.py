"""The service's warnings: on every result, and errors for a strict client."""

import pickle

import httpx2 as httpx
import pytest

import scoregate
from scoregate import Notice
from scoregate.errors import WarnedError
from scoregate.results import notices_of
from tests.support.answers import request_of, scored
from tests.support.pictures import png

TEXTS = [
    "item 1, clipscore: the prompt was cut at CLIP's context length",
    "item 1: the picture is turned by its EXIF orientation",
    "vqa is a demo model: scores that rest on it mean nothing for real pictures",
]
CODES = [
    {"code": "prompt_truncated", "item": 1, "metric": "clipscore"},
    {"code": "image_rotated_by_exif", "item": 1},
    {"code": "demo_model", "item": None, "metric": None},
]
SENT = {"codes": {"warnings": TEXTS, "warning_codes": CODES}, "texts alone": {"warnings": TEXTS}}
METRICS = ["vqascore", "clipscore"]


@pytest.fixture(params=SENT.values(), ids=SENT)
def warning(request, answered):
    """A client whose service warns about the second item of each request."""
    return lambda **settings: answered(lambda asked: scored(asked, **request.param), **settings)


def test_each_result_has_the_warnings_about_its_item(warning):
    """Without its place in the request, and with those about all items; the report has all texts."""
    report = warning().score_items([(png(), "a"), (png(), "b")], METRICS)
    first, second = report

    assert TEXTS == list(report.warnings)
    assert [TEXTS[2]] == list(first.warnings)
    assert [
        "clipscore: the prompt was cut at CLIP's context length",
        "the picture is turned by its EXIF orientation",
        TEXTS[2],
    ] == list(second.warnings)
    assert ["clipscore", None, None] == [each.metric for each in second.warnings]
    assert "demo_model" == first.warnings[0].code


def test_a_score_has_the_warnings_about_its_metric(answered):
    """And no other metric's."""
    content = {"warnings": [TEXTS[0].replace("item 1", "item 0"), TEXTS[2]]}
    score = answered(lambda asked: scored(asked, **content)).score(png(), "a", "vqascore")

    assert [TEXTS[2]] == list(score.warnings)


def test_items_of_a_long_run_have_theirs(warning):
    """Each request numbers its items anew, and its results are numbered on."""
    results = list(warning().score_many([(png(), str(n)) for n in range(6)], METRICS, batch_size=2))

    assert [1, 3, 1, 3, 1, 3] == [len(result.warnings) for result in results]


def test_a_ranking_has_its_warnings(answered):
    """As the service sent them."""
    ranking = [{"index": 0, "score": 0.5, "accepted": True}]
    content = {"ranking": ranking, "warnings": TEXTS[:1]}
    found = answered(lambda asked: httpx.Response(200, json=content)).rank("a", [png()])

    assert TEXTS[:1] == list(found.warnings)


def test_a_strict_client_has_an_error_for_what_is_warned_about(answered):
    """In place of that score; the other scores stay."""
    texts = {"warnings": TEXTS[:1], "warning_codes": CODES[:1]}
    client = answered(lambda asked: scored(asked, **texts), strict=True)
    report = client.score_items([(png(), "a"), (png(), "b")], METRICS)

    assert [{"vqascore", "clipscore"}, {"vqascore"}] == [set(result.scores) for result in report]
    assert report.partial
    with pytest.raises(WarnedError, match="item 1, clipscore: clipscore: the prompt was cut"):
        report.raise_for_errors()


def test_the_share_of_unknown_tokens_is_an_error_for_a_strict_client(answered):
    """Else it is in the notice."""
    text = "item 0, vqascore: 25% of the tokens of a text are unknown to the model"
    code = {"code": "unknown_tokens", "item": 0, "metric": "vqascore", "share": 0.25}
    content = {"warnings": [text], "warning_codes": [code]}
    [result] = answered(lambda asked: scored(asked, **content)).score_items([(png(), "a")], ["vqascore"])
    [notice] = result.warnings

    assert ("unknown_tokens", 0.25) == (notice.code, notice.share)
    assert 0.25 == pickle.loads(pickle.dumps(notice)).share
    with pytest.raises(WarnedError, match="unknown to the model"):
        answered(lambda asked: scored(asked, **content), strict=True).score(png(), "a")


def test_a_strict_client_refuses_scores_rankings_and_runs(answered):
    """Of demo models, for example."""
    ranking = [{"index": 0, "score": 0.5, "accepted": True}]

    def answer(request):
        if request.url.path == "/rank":
            return httpx.Response(200, json={"ranking": ranking, "warnings": TEXTS[2:]})
        return scored(request, warnings=TEXTS[2:])

    client = answered(answer, strict=True)
    for ask in (lambda: client.score(png(), "a"), lambda: client.rank("a", [png()])):
        with pytest.raises(WarnedError, match="is a demo model"):
            ask()
    assert all(isinstance(each.errors["vqascore"], WarnedError) for each in client.score_many([(png(), "a")]))


WRONG = {
    "codes of no number": {"warnings": TEXTS, "warning_codes": CODES[:1]},
    "no list": {"warnings": None, "warning_codes": None},
}


@pytest.mark.parametrize("content", WRONG.values(), ids=WRONG)
def test_codes_that_fit_no_text_are_left_aside(content):
    """The texts say the same."""
    found = notices_of(content)

    assert (content["warnings"] or []) == list(found)
    assert all(each.item == 1 for each in found[:2])


@pytest.mark.parametrize("content", [{"warnings": [5]}, {"warnings": ["x"], "warning_codes": [5]}])
def test_warnings_of_another_shape_are_an_error_of_the_tree(answered, content):
    """And no traceback of Python's."""
    with pytest.raises(scoregate.ScoregateError, match="unknown shape"):
        answered(lambda asked: scored(asked, **content)).score(png(), "a")


def test_a_notice_travels_between_processes():
    """With its code and its place."""
    notice = Notice("cut", "prompt_truncated", 3, "clipscore")
    copy = pickle.loads(pickle.dumps(notice))

    assert ("cut", vars(notice)) == (copy, vars(copy))


def test_a_notebook_shows_them(answered):
    """Below the score, escaped."""
    texts = {"warnings": ["item 0, vqascore: <b>cut</b>"]}
    score = answered(lambda asked: scored(asked, **texts)).score(png(), "a")

    assert "vqascore: &lt;b&gt;cut&lt;/b&gt;" in score._repr_html_()


def test_what_is_asked_is_not_changed_by_strictness(answered):
    """The service hears nothing of it."""
    sent = []

    def answer(request):
        sent.append(request_of(request))
        return scored(request)

    for strict in (False, True):
        answered(answer, strict=strict).score(png(), "a")

    assert sent[0] == sent[1]
