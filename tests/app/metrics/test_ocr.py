"""The OCR reward: which text is wanted, what is read, and the distance between both."""

import pytest

from models.core.calls import ReadCall
from models.core.outcomes import Line, Reading
from tests.support.fakes import FakeModel
from tests.support.pictures import item

pytestmark = pytest.mark.anyio
BOX = ((0.0, 0.0), (9.0, 0.0), (9.0, 9.0), (0.0, 9.0))
PROMPT = 'New York skyline with "Hello World" in fireworks'


class FakeOcr(FakeModel):
    """Reads its `lines` in every image."""

    role = "ocr"
    lines: tuple[str, ...] = ()

    def answer(self, call: ReadCall):
        return Reading(tuple(Line(text, BOX, 0.75) for text in self.lines))


@pytest.fixture
def ocr(fakes):
    fakes["ocr"] = FakeOcr()
    return fakes["ocr"]


async def scored(client, prompt=PROMPT, image=None, **options):
    body = {
        "items": [item(prompt, image)],
        "metrics": ["ocr"],
        "options": {"ocr": options},
        "explain": True,
        "timeout_ms": 600_000,
    }
    answer = await client.post("/score", json=body)
    assert 200 == answer.status_code, answer.text
    return answer.json()["results"][0]


@pytest.mark.parametrize(
    ("lines", "distance", "score"),
    [
        (("Hello World",), 0, 1.0),
        (("HELLO", "wor ld"), 0, 1.0),
        (("Welcome to", "hello", "world", "and more"), 0, 1.0),
        (("Hello Word",), 1, 0.9),
        (("Hallo Welt",), 4, 0.6),
        (("World",), 5, 0.5),
        (("nothing that anybody asked for",), 23, 0.0),
        ((), 10, 0.0),
    ],
    ids=str,
)
async def test_the_score_is_one_minus_the_distance_over_the_length(serve, ocr, lines, distance, score):
    """Without spaces and case, over the ten letters of "helloworld"; what else is read costs nothing."""
    ocr.lines = lines
    async with serve() as client:
        result = await scored(client)

    assert score == pytest.approx(result["scores"]["ocr"])
    assert distance == result["details"]["ocr"]["distance"]


async def test_details_show_what_was_wanted_and_each_line_that_was_read(serve, ocr):
    """With boxes and confidences, in the reading order; the text as it was read."""
    ocr.lines = "Hello", "WORLD"
    async with serve() as client:
        shown = (await scored(client))["details"]["ocr"]

    line = {"box": [list(corner) for corner in BOX], "confidence": 0.75}
    assert {
        "wanted": "Hello World",
        "read": "Hello WORLD",
        "distance": 0,
        **{"exact": 1, "substring": 1, "window": 1},
        "lines": [{"text": "Hello", **line}, {"text": "WORLD", **line}],
    } == shown


async def test_the_option_says_the_text_in_place_of_the_prompt(serve, ocr):
    """Whatever the prompt quotes, and also where it quotes nothing; one call serves all texts."""
    ocr.lines = ("Open",)
    async with serve() as client:
        scores = [
            (await scored(client, prompt, text="O p\te\nN"))["scores"]["ocr"] for prompt in (PROMPT, "a sign")
        ]

    assert [1.0, 1.0] == scores
    assert 1 == len(ocr.calls)


@pytest.mark.parametrize(
    "prompt", ["a sign that says OPEN", "a sign that says 'OPEN'", 'a 5" pipe', 'a sign that says ""', '" "']
)
async def test_a_prompt_without_a_quoted_text_is_an_error_and_no_score(serve, ocr, prompt):
    """Of this metric alone; the model is not asked."""
    async with serve() as client:
        body = {"items": [item(prompt)], "metrics": ["ocr", "vqascore"]}
        [result] = (await client.post("/score", json=body)).json()["results"]

    assert ["vqascore"] == list(result["scores"])
    assert "no_text" == result["errors"]["ocr"]["code"]
    assert "double quotes" in result["errors"]["ocr"]["detail"]
    assert [] == ocr.calls


async def test_an_empty_text_is_refused(serve, ocr):
    """With its place in the request."""
    async with serve() as client:
        body = {"items": [item(PROMPT)], "metrics": ["ocr"], "options": {"ocr": {"text": " "}}}
        answer = await client.post("/score", json=body)

    assert (422, "/options/ocr/text") == (answer.status_code, answer.json()["errors"][0]["pointer"])


async def test_texts_are_read_in_another_order_than_the_prompts(serve, ocr):
    """A picture that shows both is right, whichever stands above."""
    ocr.lines = "Hello", "World"
    async with serve() as client:
        result = await scored(client, 'a mug with "WORLD" under "HELLO"')

    assert 1.0 == result["scores"]["ocr"]
    assert "WORLD HELLO" == result["details"]["ocr"]["wanted"]


async def test_the_sign_of_inches_is_a_warning(serve, ocr):
    """The text between it and the next quote is not what the prompt means; the option names the text."""
    prompt = 'a 12" tall sign that says "OPEN"'
    body = {"items": [item(prompt)], "metrics": ["ocr"]}
    async with serve() as client:
        answer = (await client.post("/score", json=body)).json()
        told = (await client.post("/score", json={**body, "options": {"ocr": {"text": "OPEN"}}})).json()

    assert {"code": "quotes_unbalanced", "item": 0, "metric": "ocr"} in answer["warning_codes"]
    assert "quotes_unbalanced" not in [each["code"] for each in told["warning_codes"]]


async def test_each_output_is_a_metric_of_its_own_from_the_same_reading(serve, ocr):
    """With the options of `ocr`; a long text beside the wanted one leaves only the window a gradient."""
    ocr.lines = "0123456789", "opem", "0123456789"
    metrics = ["ocr", "ocr.exact", "ocr.substring", "ocr.window"]
    body = {"items": [item("x")], "metrics": metrics, "options": {"ocr": {"text": "open"}}}
    async with serve() as client:
        [result] = (await client.post("/score", json=body)).json()["results"]
        entry = (await client.get("/models")).json()["metrics"]["ocr.window"]

    assert {"ocr": 0, "ocr.exact": 0, "ocr.substring": 0, "ocr.window": 0.75} == result["scores"]
    assert [0, 1] == entry["range"]
