"""The page of `make demo`."""

from demo.page import html
from demo.scoring import Judged, Pair
from tests.support.reader import Reader


def test_the_page_escapes_what_it_was_told():
    """Prompts, questions, reasons and file names are text; a zeroed question says by which parent."""
    asked = {"id": 2, "text": "Is <b>it</b>?", "answer": "no", "probability": 0.1, "zeroed_by": [1]}
    box = {"class": "<u>x</u>", "color": None, "score": 0.5, "box": (0.0, 0.0, 1.0, 1.0)}
    found = {"width": 9, "height": 9, "boxes": [box], "reason": "<s>why</s>\nand more"}
    judged = Judged("a <script>", {"vqascore": 0.5}, {"dsg": "<i>broken</i>"}, [asked], found)

    read = Reader(html([Pair('"<x>.png', b"", judged, judged)], "<verdict>", "<caveat>"))

    assert not {"script", "x", "verdict", "caveat", "u", "s"} & set(read.tags)
    for text in ("a <script>", "Is <b>it</b>?", "<i>broken</i>", '"<x>.png', "<verdict>", "zeroed by 1"):
        assert text in read.text
    for text in ("<u>x</u> 0.50", "<s>why</s>\nand more"):
        assert text in read.text
