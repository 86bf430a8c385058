"""Runs of `score_many` that go on where an earlier one was stopped."""

import itertools
import json

import httpx2 as httpx
import pytest

from scoregate import Client, Frames, Item
from scoregate.errors import OverloadedError
from scoregate.items import ScoreParams
from scoregate.many import Resume, key_of
from scoregate.results import Result
from tests.support.answers import numbered, problem, request_of, scored
from tests.support.pictures import png

PAIRS = [(png(), f"a square {number}") for number in range(23)]


@pytest.fixture
def run(tmp_path):
    """A run with a file: the prompts that were asked, and the results."""
    path = tmp_path / "results.jsonl"

    def run(pairs=PAIRS, answer=numbered, take=None, allow_urls=False, strict=False, **settings):
        asked = []

        def noted(request):
            asked.extend(item["prompt"] for item in request_of(request)["items"])
            return answer(request)

        transport = httpx.MockTransport(noted)
        with Client(
            "http://test", transport=transport, retries=0, allow_urls=allow_urls, strict=strict
        ) as client:
            found = client.score_many(pairs, resume=path, batch_size=4, concurrency=1, **settings)
            results = list(itertools.islice(found, take))
            found.close()
        return asked, results

    run.path = path
    return run


def test_a_second_run_asks_for_the_rest_alone(run):
    """And yields everything, in order."""
    first, some = run(take=6)
    second, results = run()

    assert list(range(23)) == [result.score("vqascore") for result in results]
    assert some == results[:6]
    assert {prompt for _, prompt in PAIRS[8:]} == set(second)
    assert 8 <= len(first)
    assert ([], results) == run()
    assert 23 == len(run.path.read_text().splitlines())


def test_a_result_is_the_same_after_json(run):
    """As it is in a file, except for what the request was computed with."""
    _, results = run()

    for result in results:
        assert result == Result.of_json(json.loads(json.dumps(result.as_json())))


def test_a_torn_line_is_scored_again(run):
    """The process was killed in the middle of it, or just before its end."""
    _, results = run()
    whole = run.path.read_bytes()
    for cut in (1, 10, len(whole.splitlines()[-1])):
        run.path.write_bytes(whole[:-cut])
        asked, again = run()
        assert [PAIRS[-1][1]] == asked
        assert results == again
        assert 23 == len([json.loads(line) for line in run.path.read_text().splitlines()])


def test_a_line_that_is_none_stops_the_run(run):
    """Before anything is asked: it may be somebody's file."""
    for text in ("name,score\n", '{"index": 0}\n', "[]\n", "5\n"):
        run.path.write_text(text)
        with pytest.raises(ValueError, match="line 1: not a line of score_many"):
            run()
        assert text == run.path.read_text()


NOT_OURS = {
    "settings in one line": b'{"my": "settings"}',
    "text": b"notes without a line break",
    "text after a line": b"line\nlast without a line break",
    "null bytes": bytes(100),
    "an index of another form": b'{"index":0',
    "an index and no key": b'{"index": 0, "name": "x',
    "a whole object with our names": b'{"index": 0, "key": "x"}',
}


@pytest.mark.parametrize("data", NOT_OURS.values(), ids=NOT_OURS)
@pytest.mark.parametrize("after_ours", [False, True])
def test_what_does_not_begin_as_our_own_line_is_never_cut_off(run, data, after_ours):
    """It may be any file, although its last line has no end."""
    if after_ours:
        run(take=6)
        data = run.path.read_bytes() + data
    run.path.write_bytes(data)
    with pytest.raises(ValueError, match="not a line of score_many"):
        run()
    assert data == run.path.read_bytes()


def test_a_line_that_is_torn_anywhere_is_scored_again(run):
    """Also after its first byte, in its head, and after an inner brace."""
    run()
    lines = run.path.read_bytes().splitlines(keepends=True)
    for cut in range(1, len(lines[-1])):
        run.path.write_bytes(b"".join(lines[:-1]) + lines[-1][:cut])
        resume = Resume(run.path, ScoreParams(["vqascore"], None, False, "bulk"))
        resume.close()
        assert b"".join(lines[:-1]) == run.path.read_bytes()


def test_a_device_is_not_read(run):
    """It may never end."""
    with pytest.raises(OSError, match="not a regular file"):
        Resume("/dev/zero", ScoreParams(["vqascore"], None, False, "bulk"))


OTHERS = {
    "other bytes": ({"pairs": [(png("blue"), "a square 0")]}),
    "another prompt": ({"pairs": [(png(), "a star 0")]}),
    "another path": ({"pairs": [("other.png", "a square 0")]}),
    "another metric": ({"metrics": ["dsg"]}),
    "other options": ({"options": {"vqascore": {"output": "logit"}}}),
    "a source": ({"pairs": [Item(prompt="a square 0", image=png(), source="before.png")]}),
    "references": ({"pairs": [Item(prompt="a square 0", image=png(), references=["one.png"])]}),
    "options of its own": (
        {"pairs": [Item(prompt="a square 0", image=png(), options={"vqascore": {"output": "logit"}})]}
    ),
}


@pytest.mark.parametrize("other", OTHERS.values(), ids=OTHERS)
def test_a_file_of_another_run_is_refused(run, other):
    """Its scores would stand for what they are not."""
    run()
    with pytest.raises(ValueError, match="item 0 is another one, or was scored with other parameters"):
        run(**other)


@pytest.fixture
def photo(tmp_path):
    """A red picture in a file."""
    path = tmp_path / "photo.png"
    path.write_bytes(png("red"))
    return path


def test_a_picture_that_was_replaced_at_its_path_is_scored_again(run, photo):
    """Its earlier score is of other bytes, wherever in the item it is; the new line counts from then on."""
    items = [
        (photo, "a square 0"),
        Item(prompt="a square 1", image="http://test/1.png", references=[photo]),
        Item(prompt="a square 2", image="http://test/2.png", source=photo),
        (png(), "a square 3"),
    ]
    run(items, allow_urls=True)
    photo.write_bytes(png("blue"))
    asked, results = run(items, answer=lambda request: scored(request, score=0.75), allow_urls=True)

    assert ["a square 0", "a square 1", "a square 2"] == asked
    assert [0.75, 0.75, 0.75, 3] == [result.score("vqascore") for result in results]
    assert ([], results) == run(items, allow_urls=True)


def test_frames_that_were_replaced_are_another_item(run, photo):
    """They have no path together."""
    items = [Item(prompt="a square 0", image=Frames([png(), photo]))]
    run(items)
    photo.write_bytes(png("blue"))
    with pytest.raises(ValueError, match="item 0 is another one"):
        run(items)


def test_frames_at_other_urls_are_another_item(run):
    """The service fetches them, so no digest could differ."""
    one, other = (
        Item(prompt="a square 0", image=Frames([f"http://test/{take}{number}.png" for number in range(2)]))
        for take in "ab"
    )
    run([one], allow_urls=True)

    assert [] == run([one], allow_urls=True)[0]
    with pytest.raises(ValueError, match="item 0 is another one"):
        run([other], allow_urls=True)


def test_a_picture_that_is_gone_is_an_error(run, photo):
    """Nobody can say whether its score is of this path's picture."""
    run([(photo, "a square 0")])
    photo.unlink()
    asked, [result] = run([(photo, "a square 0")])

    assert ([], {"vqascore": "bad_image"}) == (asked, {m: e.code for m, e in result.errors.items()})


def test_only_the_pictures_of_the_rest_are_sent(run):
    """Those of the items with a result were only read."""
    items = [(png(colour), f"a square {number}") for number, colour in enumerate(["red", "green", "blue"])]
    run(items[:2])
    bodies = []
    run(items, answer=lambda request: bodies.append(request.content) or numbered(request))

    assert [[False, False, True]] == [[image in body for image, _ in items] for body in bodies]


def test_a_file_without_digests_is_refused(run):
    """An earlier version wrote it; what its scores are of is unknown."""
    run(take=1)
    line = json.loads(run.path.read_text().splitlines()[0])
    del line["sha256"]
    run.path.write_text(json.dumps(line) + "\n")

    with pytest.raises(ValueError, match=r"line 1: .* noted no digest of pictures: name another file"):
        run()


def test_an_item_with_an_error_is_scored_again(run):
    """As a row of `batch`, whatever the error is; a picture that could not be read has no line."""

    def answer(request):
        codes = {"a square 1": "deadline_exceeded", "a square 2": "image_undecodable"}
        results = [
            {"index": index, "scores": {}, "errors": {"vqascore": {"code": code, "detail": "why"}}}
            if (code := codes.get(item["prompt"]))
            else {"index": index, "scores": {"vqascore": 0.5}}
            for index, item in enumerate(request_of(request)["items"])
        ]
        return scored(request, results=results)

    _, results = run([*PAIRS[:4], ("nowhere.png", "a square 4")], answer)
    asked, again = run([*PAIRS[:4], ("nowhere.png", "a square 4")], answer)

    assert ["a square 1", "a square 2"] == asked
    assert [0, 1, 2, 3] == [json.loads(line)["index"] for line in run.path.read_text().splitlines()]
    found = [[(e.code, e.detail) for e in result.errors.values()] for result in again]
    assert [[], [("deadline_exceeded", "why")], [("image_undecodable", "why")], []] == found[:4]
    assert [result.scores for result in results] == [result.scores for result in again]


def test_a_file_of_a_run_that_ended_has_one_line_for_each_item(run, photo):
    """The latest one, in order: not the error before, nor the score of the picture that was there."""
    items = [(photo, "a square 0"), (png(), "a square 1")]
    failing = {"scores": {}, "errors": {"vqascore": {"code": "deadline_exceeded", "detail": "why"}}}
    run(items[:1])
    run(items, answer=lambda request: scored(request, entry=failing))
    photo.write_bytes(png("blue"))
    _, results = run(items)

    assert [result.as_json() for result in results] == [
        {name: cell for name, cell in json.loads(line).items() if name not in ("key", "sha256")}
        for line in run.path.read_text().splitlines()
    ]
    assert [run.path, photo] == sorted(run.path.parent.iterdir(), reverse=True)


def test_a_strict_run_scores_items_with_warnings_again(run):
    """So does a run that is not strict, after their error."""

    def warned(request):
        return scored(request, warnings=["item 0: it has alpha"])

    run(PAIRS[:1], answer=warned)
    runs = [run(PAIRS[:1], answer=warned, strict=strict) for strict in (False, True, False, False)]

    assert [[], ["a square 0"], ["a square 0"], []] == [asked for asked, _ in runs]
    assert [["vqascore"], [], ["vqascore"], ["vqascore"]] == [[*result.scores] for _, [result] in runs]


def test_a_run_that_fails_keeps_what_it_has(run):
    """The next one begins after it."""
    left = [3]

    def answer(request):
        left[0] -= 1
        return numbered(request) if left[0] >= 0 else problem(503, "overloaded")

    with pytest.raises(OverloadedError):
        run(answer=answer)
    kept = len(run.path.read_text().splitlines())
    asked, results = run()

    assert 12 >= kept > 0
    assert 23 - kept == len(asked)
    assert list(range(23)) == [result.score("vqascore") for result in results]


def test_a_resumed_run_tells_a_turned_picture_from_the_stored_one():
    """The lines of one do not stand for the other."""
    params = ScoreParams(["vqascore"], None, False, "bulk")
    ways = [
        Item(prompt="a red square", image="a.jpg", orient=orient) for orient in (None, "as_stored", "exif")
    ]

    assert 3 == len({key_of(item, params) for item in ways})
