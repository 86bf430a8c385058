"""Text in images: rendered in several fonts, in odd pictures, and in none."""

import sys
from pathlib import Path

import matplotlib
import numpy as np
import PIL.Image
import PIL.ImageDraw
import PIL.ImageFont
import pytest

from models.core.calls import ReadCall
from models.core.contract import CheckpointError
from models.core.outcomes import CallResult, Line, Reading
from models.families.ocr.model import MAX_SIDE, in_reading_order, page_of
from models.families.ocr.package import DETECTOR, RECOGNISER, installed
from models.families.registry import families
from models.images.image import Image

FONTS = Path(matplotlib.get_data_path()) / "fonts" / "ttf"
NAMES = ["DejaVuSans", "DejaVuSans-Oblique", "DejaVuSerif-Bold", "DejaVuSansMono", "STIXGeneral", "cmr10"]

PLAIN = FONTS / "DejaVuSans.ttf"


def table(**values):
    family = families()["rapidocr"]
    return family, family.settings(family="rapidocr", role="ocr", **values)


@pytest.fixture(scope="module")
def reader():
    family, settings = table()
    return family.load("ocr", settings)


def sign(*texts, turned=0.0):
    """A picture with a line for each text."""
    picture, font = PIL.Image.new("RGB", (512, 320), "white"), PIL.ImageFont.truetype(PLAIN, 40)
    for row, text in enumerate(texts):
        PIL.ImageDraw.Draw(picture).text((50, 60 + 110 * row), text, fill="black", font=font)
    return picture.rotate(turned, PIL.Image.Resampling.BICUBIC, fillcolor="white")


def read(reader, picture):
    [reading] = reader.score([reader.prepare(ReadCall(Image.of(picture)))])
    return reading


def texts(reading):
    return [line.text for line in reading.lines]


@pytest.mark.parametrize(("ink", "paper"), [("black", "white"), ("yellow", "navy"), ("#555555", "#bbbbbb")])
def test_lines_are_read_in_each_font_from_top_to_bottom(reader, ink, paper):
    """Dark on light and light on dark, with a confidence near 1."""
    picture = PIL.Image.new("RGB", (640, 80 * len(NAMES)), paper)
    for row, name in enumerate(NAMES):
        font = PIL.ImageFont.truetype(FONTS / f"{name}.ttf", 36)
        PIL.ImageDraw.Draw(picture).text((40, 15 + 80 * row), f"Hello World {row}", fill=ink, font=font)
    reading = read(reader, picture)

    assert [f"Hello World {row}" for row in range(len(NAMES))] == texts(reading)
    assert all(0.9 < line.confidence <= 1 for line in reading.lines)


@pytest.mark.parametrize("degrees", [-12, 7])
def test_a_line_that_is_turned_a_little_is_read(reader, degrees):
    """And its box is turned with it."""
    [line] = read(reader, sign("", "Fresh bread", turned=degrees)).lines
    (_, left_y), (_, right_y), *_ = line.box

    assert "Fresh bread" == line.text
    assert (degrees > 0) == (left_y > right_y)


def test_a_box_is_where_the_text_stands(reader):
    """In pixels of the picture, clockwise from the top left, also where the page is smaller or has bars."""
    small = sign("", "Fresh bread")
    for scale, bars in ((1, 0), (5, 0), (1, 1600)):
        picture = PIL.Image.new("RGB", (512 + bars, 320), "white")
        picture.paste(small)
        [line] = read(reader, picture.resize((picture.width * scale, picture.height * scale))).lines
        drawn = PIL.ImageFont.truetype(PLAIN, 40).getbbox("Fresh bread")
        left, top, right, bottom = (a + b for a, b in zip(drawn, (50, 170, 50, 170), strict=True))
        corners = np.array([(left, top), (right, top), (right, bottom), (left, bottom)])

        assert "Fresh bread" == line.text
        assert corners == pytest.approx(np.array(line.box) / scale, abs=16)


@pytest.mark.parametrize(
    ("size", "mode"), [((1, 1), "RGB"), ((1, 4000), "L"), ((16000, 1), "RGB"), ((17, 31), "1")], ids=str
)
def test_a_picture_of_any_size_without_text_reads_as_nothing(reader, size, mode):
    """A strip takes no more memory than a square."""
    assert Reading(()) == read(reader, PIL.Image.new(mode, size))


@pytest.mark.parametrize(
    "size", [(1, 1), (1, 16000), (16000, 1), (8000, 6000), (1280, 320), (31, 500)], ids=str
)
def test_a_page_is_bounded_and_holds_the_whole_picture(size):
    """Its sides, its aspect, what it costs; its corners lead back to those of the picture."""
    page = page_of(PIL.Image.new("RGB", size, "red"))
    height, width, _ = page.pixels.shape
    left, top, right, bottom = page.place
    red = (page.pixels == (0, 0, 255)).all(axis=2)

    assert 32 <= min(height, width) <= max(height, width) <= MAX_SIDE
    assert max(height, width) <= 3 * min(height, width)
    assert 0 < page.cost <= 1600
    assert red[top:bottom, left:right].all()
    assert red.sum() == (bottom - top) * (right - left)
    corners = np.array([(left, top), (right, top), (right, bottom), (left, bottom)], float)
    assert ((0, 0), (size[0], 0), size, (0, size[1])) == page.in_image(corners)
    assert ((0, 0), size) == page.in_image(np.array([(-9, -9), (99999, 99999)], float))


def test_a_small_picture_keeps_its_pixels():
    """None of them is blurred."""
    noise = np.random.default_rng(0).integers(0, 256, (64, 48, 3), np.uint8)
    page = page_of(PIL.Image.fromarray(noise))

    assert (noise[:, :, ::-1] == page.pixels).all()


def box(left, top, width, height):
    return ((left, top), (left + width, top), (left + width, top + height), (left, top + height))


def test_lines_are_in_reading_order_however_small_the_picture_is():
    """Rows from the top, each from the left; half a line's height makes no new row."""
    lines = [
        Line("second", box(60.0, 3.0, 40.0, 8.0), 1.0),
        Line("third", box(2.0, 10.0, 40.0, 8.0), 1.0),
        Line("first", box(0.0, 0.0, 40.0, 8.0), 1.0),
        Line("fourth", box(2.0, 19.0, 40.0, 8.0), 1.0),
    ]

    assert ["first", "second", "third", "fourth"] == [line.text for line in in_reading_order(lines)]


def test_a_batch_reads_each_picture_as_if_it_were_alone(reader):
    """In their order; the readings can be stored."""
    pictures = [sign("One", "Two"), sign("Three")]
    batch = [reader.prepare(ReadCall(Image.of(picture))) for picture in pictures]
    together = reader.score(batch)

    assert [["One", "Two"], ["Three"]] == [texts(reading) for reading in together]
    assert together == [reader.score([prepared])[0] for prepared in batch]
    assert together == [CallResult.loads(reading.dumps()) for reading in together]


def test_the_reader_says_what_it_is_and_reads_its_example(reader):
    """Its weights' name with the version of the package; a table may name it otherwise."""
    family, settings = table(id="ours", revision="7")
    [reading] = reader.score([reader.prepare(reader.example())])

    assert ("ocr", "rapidocr", f"PP-OCRv6-small@{installed().version}") == (
        reader.info.role,
        reader.info.family,
        reader.info.label,
    )
    assert ["Example"] == texts(reading)
    assert "ours@7" == family.load("ocr", settings).info.label


def test_no_request_is_made_and_nothing_is_written(offline, tmp_path, monkeypatch):
    """The weights are in the package; its own log stays empty."""
    monkeypatch.chdir(tmp_path)
    weights = installed().detector.parent
    before = sorted(weights.parent.rglob("*"))
    family, settings = table()
    fresh = family.load("ocr", settings)

    assert ["Example"] == texts(fresh.score([fresh.prepare(fresh.example())])[0])
    assert before == sorted(weights.parent.rglob("*"))
    assert [] == list(tmp_path.iterdir())


def test_the_package_s_log_is_not_in_ours(reader, capfd):
    """It would tell of every picture without text."""
    read(reader, sign())

    assert ("", "") == capfd.readouterr()


def test_the_plan_counts_the_numbers_of_both_networks():
    """And loads none of them."""
    family, settings = table()
    planned = family.plan("ocr", settings)

    assert "PP-OCRv6-small" == planned.loads
    assert 5_000_000 < planned.num_parameters < 10_000_000
    assert not planned.remote


@pytest.mark.parametrize("gone", ["rapidocr", "onnxruntime"])
def test_a_package_that_is_missing_is_one_line_that_names_the_extra(monkeypatch, gone):
    """Whether it is planned or loaded."""
    monkeypatch.setitem(sys.modules, gone, None)
    family, settings = table()
    for act in (family.load, family.plan):
        with pytest.raises(CheckpointError, match=r"^models\.left: .*pip install '\.\[ocr\]'") as told:
            act("left", settings)
        assert "\n" not in str(told.value)


def test_a_package_without_the_weights_is_refused_and_downloads_none(monkeypatch, tmp_path):
    """A later version may bring others."""
    (tmp_path / "rapidocr" / "models").mkdir(parents=True)
    (tmp_path / "rapidocr" / "__init__.py").touch()
    (tmp_path / "rapidocr" / "models" / DETECTOR).touch()
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.delitem(sys.modules, "rapidocr", raising=False)

    with pytest.raises(CheckpointError, match=f"rapidocr .* does not bring {RECOGNISER}"):
        installed()
