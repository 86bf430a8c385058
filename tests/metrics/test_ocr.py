"""The OCR reward: which text is wanted, what is read, and the distance between both."""

import random
from pathlib import Path

import PIL.Image
import PIL.ImageDraw
import PIL.ImageFont
import pytest

from models.calls import ReadCall
from models.ocr import RapidOcrSettings
from models.ocr.model import load
from models.outcomes import Line, Reading
from service.errors import NoText
from service.metrics.edit_distance import edit_distance
from service.metrics.ocr import quoted
from tests.conftest import b64, item, saved
from tests.support.fakes import FakeModel

pytestmark = pytest.mark.anyio

PICTURES = Path(__file__).parents[1] / "golden" / "tifa_pictures"
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


@pytest.fixture(scope="module")
def reader():
    """The real models."""
    return load(RapidOcrSettings(family="rapidocr", role="ocr"))


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


@pytest.mark.parametrize(
    ("prompt", "text"),
    [
        ('a sign "OPEN"', "OPEN"),
        ("a sign “Don’t stop” in red", "Don’t stop"),
        ("ein Schild „Guten Tag“", "Guten Tag"),
        ("un panneau « Bonjour »", "Bonjour"),
        ('"One" above “two”, and "three', "One two"),
        ('a "" before "one"', "one"),
        ('"said “so” aloud"', "said “so” aloud"),
    ],
)
def test_quoted_texts_are_joined_in_their_order(prompt, text):
    """Straight and typographic quotes; one that is left open quotes nothing."""
    assert text == quoted(prompt)


def test_a_prompt_without_quotes_quotes_nothing():
    """And says so."""
    with pytest.raises(NoText, match="double quotes"):
        quoted("it's the dog's sign")


def by_table(first, second):
    """Levenshtein's distance by its recurrence, a row at a time."""
    row = [*range(len(second) + 1)]
    for count, a in enumerate(first, 1):
        before, row = row, [count]
        for place, b in enumerate(second):
            row.append(min(before[place] + (a != b), before[place + 1] + 1, row[place] + 1))
    return row[-1]


def test_the_distance_is_that_of_the_recurrence():
    """For texts of few letters, which have many ways between them, and for empty ones."""
    chance = random.Random(0)
    for _ in range(500):
        first, second = ("".join(chance.choices("abc", k=chance.randrange(14))) for _ in range(2))
        assert by_table(first, second) == edit_distance(first, second) == edit_distance(second, first)


def test_the_distance_of_long_texts_is_exact():
    """As long as a prompt may be."""
    assert 2000 == edit_distance("ab" * 2000, "a" * 4000)
    assert 4000 == edit_distance("x" * 4000, "")


def drawn(name, text, ink="white"):
    """A released sample picture with a text in its upper part."""
    picture = PIL.Image.open(PICTURES / name).convert("RGB")
    font = PIL.ImageFont.load_default(48)
    PIL.ImageDraw.Draw(picture).text((60, 40), text, fill=ink, font=font, stroke_width=2, stroke_fill="black")
    return b64(saved(picture, "PNG"))


async def test_the_released_sample_pictures_show_what_is_written_on_them(serve, fakes, reader):
    """TIFA's three samples, which show no text that can be read: 0, and 1 when it is drawn on them."""
    fakes["ocr"] = reader
    names = sorted(path.name for path in PICTURES.glob("*.jpg"))
    assert 3 == len(names)
    async with serve() as client:
        for name in names:
            plain = b64((PICTURES / name).read_bytes())
            without = await scored(client, image=plain)
            right = await scored(client, image=drawn(name, "Hello World"))
            wrong = await scored(client, image=drawn(name, "Hello Moon"))

            assert (0.0, "") == (without["scores"]["ocr"], without["details"]["ocr"]["read"])
            assert 1.0 == right["scores"]["ocr"]
            assert 0.5 <= wrong["scores"]["ocr"] < 0.9
