"""The page of `make demo`."""

from demo.draw_samples import SAMPLES
from demo.samples import listed
from demo.scoring import METRICS, scored
from demo.show import show
from tests.support.fake_objects import detection
from tests.support.reader import Reader


def test_the_page_holds_every_picture_prompt_score_and_question(client, judge, tmp_path):
    """One file: pictures as data, no script, every tag closed."""
    pairs = scored(client)
    show(pairs, tmp_path / "deep" / "demo.html")
    page = (tmp_path / "deep" / "demo.html").read_text("utf-8")

    read = Reader(page)
    assert [] == read.open
    assert "script" not in read.tags
    sources = [value for name, value in read.attributes if name in ("src", "href")]
    assert len(SAMPLES) == len(sources)
    assert all(source.startswith(("data:image/png;base64,", "data:image/jpeg;base64,")) for source in sources)
    for pair in pairs:
        for judged in (pair.right, pair.wrong):
            assert judged.prompt in read.text
            assert all(f"{score:.3f}" in read.text for score in judged.scores.values())
            assert METRICS.keys() - {"geneval"} <= judged.scores.keys()
            assert judged.questions
            for asked in judged.questions:
                assert asked["text"] in read.text
                assert f"{asked['probability']:.3f}" in read.text
    assert "zeroed by 1" in read.text


def test_what_geneval_found_is_drawn_over_the_picture(client, judge, detector, tmp_path):
    """A box for each thing, over the pictures that it was asked about; what it misses stands in words."""
    detector.found = (detection("circle", 0.96, (10, 20, 40, 60)),)
    show(scored(client), tmp_path / "demo.html")

    read = Reader((tmp_path / "demo.html").read_text("utf-8"))
    asked = [sample for sample in listed() if sample["geneval"]]
    assert len(asked) == read.tags.count("svg") == read.tags.count("rect")
    assert {("x", "10"), ("y", "20"), ("width", "30"), ("height", "40")} <= set(read.attributes)
    assert "viewbox" in dict(read.attributes)
    assert "circle 0.96" in read.text
    assert "GenEval: expected heart>=1, found 0" in read.text
