"""Mistakes of a person's first hour with the command: what is said, and that no file is lost."""

import json
from pathlib import Path

import pytest

import scoregate
from scoregate.cli.arguments import described
from scoregate.text import meant
from tests.support.pictures import png
from tests.unit.client.cli.served import Service, metric


@pytest.fixture
def service():
    """A service with one metric."""
    return Service("clip@1", metrics={"vqascore": metric()})


@pytest.fixture(autouse=True)
def folder(tmp_path):
    """A folder of a picture with its caption."""
    (tmp_path / "photos").mkdir()
    (tmp_path / "photos" / "red.png").write_bytes(png("red"))
    (tmp_path / "photos" / "red.txt").write_text("a red square", "utf-8")


@pytest.mark.parametrize("command_of", ["score", "rank", "decide"])
def test_a_text_among_the_pictures_may_be_the_prompt(command, service, command_of):
    """A name that is like that of a file is that file's."""
    given = ("-p", "a") if command_of == "rank" else ()
    status, _, said = command(service, command_of, "p.png", "a red square", *given)
    _, _, mistyped = command(service, command_of, "pp.png", *given)

    assert 2 == status
    assert 'a red square: No such file or directory; is it the prompt? -p "a red square"\n' in said
    assert mistyped.endswith("pp.png: No such file or directory; did you mean p.png?\n")
    assert [] == service.sent


def refused(*faults):
    """An error of a request with faults: the code, the place and what is wrong there."""
    errors = [{"code": code, "pointer": place, "detail": detail} for code, place, detail in faults]
    return scoregate.errors.InvalidError("wrong", status=422, errors=errors)


def test_a_prompt_that_is_needed_is_given_with_its_option():
    """Of many pictures three are named."""
    faults = [("missing", f"/items/{n}/prompt", "is needed by vqascore") for n in range(100)]
    text = described(refused(*faults))

    assert text.endswith('/items/2/prompt: is needed by vqascore; and 97 more; give it with -p "TEXT"')


@pytest.mark.parametrize("place", ["/items", "/images"])
def test_too_many_pictures_of_a_request_are_for_batch(place):
    """Which has no limit."""
    text = described(refused(("too_many_items", place, "has 140 entries; at most 128 are allowed")))

    assert text.endswith("at most 128 are allowed; `scoregate batch` takes any number of pictures")


@pytest.mark.parametrize(
    "call",
    [
        ("batch", "photos", "-o", "scores.jsonl", "--html", "mine.png"),
        ("report", "photos", "-o", "mine.png"),
        ("versus", "a=photos", "b=photos", "-o", "out", "--html", "mine.png"),
        ("decide", "photos/red.png", "-p", "a", "-o", "mine.png"),
    ],
    ids=lambda call: call[0],
)
def test_a_file_of_something_else_is_no_place_for_a_result(command, service, call):
    """It is left as it is, and nothing is scored."""
    Path("mine.png").write_bytes(png("blue"))
    status, _, said = command(service, *call)

    assert (2, []) == (status, service.sent)
    assert "mine.png: exists, and is " in said
    assert png("blue") == Path("mine.png").read_bytes()


def test_the_page_of_a_result_takes_the_place_of_a_page_alone(command, service):
    """A picture stays, and so do the results themselves."""
    command(service, "batch", "photos", "-o", "scores.jsonl")
    Path("mine.png").write_bytes(png("blue"))
    results = Path("scores.jsonl").read_bytes()

    for place in ("mine.png", "scores.jsonl"):
        assert f"{place}: exists, and is no page" in command(service, "open", "scores.jsonl", "-o", place)[2]
    for _ in range(2):
        assert 0 == command(service, "open", "scores.jsonl", "-o", "page.html")[0]
    assert (png("blue"), results) == (Path("mine.png").read_bytes(), Path("scores.jsonl").read_bytes())


@pytest.mark.parametrize(
    ("name", "content"),
    [("o.csv", "name,stars\n"), ("o.csv", "name,stars\na,5\n"), ("o.jsonl", "hello\n"), ("o.parquet", "x")],
)
def test_a_table_of_something_else_is_no_place_for_scores(command, name, content):
    """Also one without rows; it is found before a service is called."""
    Path(name).write_text(content, "utf-8")
    status, _, said = command(None, "batch", "photos", "-o", name)

    assert 2 == status
    assert f"{name} is no result of `scoregate batch`: name another file" in said
    assert content == Path(name).read_text("utf-8")


def test_results_that_end_in_their_first_line_are_continued(command, service):
    """As a run leaves them that was stopped."""
    Path("o.jsonl").write_text('{"row": 1, "ima', "utf-8")

    assert 0 == command(service, "batch", "photos", "-o", "o.jsonl")[0]
    assert 1 == len([json.loads(line) for line in Path("o.jsonl").read_text("utf-8").splitlines()])


@pytest.mark.parametrize(
    ("call", "said"),
    [
        (("batch", "p.png", "-p", "a", "-o", "o.jsonl"), "p.png: is a picture: name its folder, or use"),
        (("batch", "bare", "-o", "o.jsonl"), "bare: no picture has a caption, a text file of its name: give"),
        (("versus", "photos", "Bar", "-p", "a"), "Bar: no such file or folder; did you mean bare?"),
        (("versus", "a=photos", "b=bare", "-p", "a", "-o", "p.png"), "p.png: is a file: name a folder"),
        (
            ("versus", "a=photos", "b=bare", "-p", "a", "-o", "out.json"),
            "out.json: the scores of several gen",
        ),
        (("decide", "p.png", "-p", "a", "-o", "bare"), "bare: is a folder: name a file"),
        (("batch", "bad.jsonl", "-o", "o.jsonl"), "none of the first rows can be read: row 1: "),
        (
            ("batch", "photos", "-o", "o.jsonl", "--filter", "VQAscor > 0.5"),
            "VQAscor is not scored, see --metric; did you mean vqascore?",
        ),
        (("batch", "photos", "-o", "o.jsonl", "-m", ","), "-m: names no metric"),
        (("rank", "photos", "-p", "a", "--metric", "a,b"), "rank orders by one metric"),
        (("compare", "p.png", "-p", "a"), "name two pictures or more"),
        (("score", "P.PNG", "-p", "a"), "P.PNG: No such file or directory; did you mean p.png?"),
        (
            ("decide", "p.png", "--policy-file", "polices.toml", "--local", "demo"),
            "polices.toml: no such file; did you mean pol",
        ),
    ],
)
def test_a_mistake_is_found_before_a_service_is_called(command, call, said):
    """With what was probably meant, or what to do."""
    Path("bare").mkdir()
    Path("bare", "red.png").write_bytes(png("red"))
    Path("bad.jsonl").write_text('{"image": "p.png" "prompt": "a"}\n', "utf-8")
    Path("policies.toml").write_text("", "utf-8")
    status, _, err = command(None, *call)

    assert 2 == status
    assert said in err


def test_capitals_are_no_other_letters():
    """In the name that is meant."""
    assert "; did you mean vqascore?" == meant("VQAScor", ["clipscore", "vqascore"])


def test_an_option_that_is_like_none_is_answered_with_none(command):
    """Equal dashes are no likeness."""
    said = command(None, "evaluate", "means", "o.jsonl", "--value", "v")[2]

    assert "did you mean" not in said
