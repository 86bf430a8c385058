"""Warnings in the summary of a run: one line for a kind, with all that it is about."""

from scoregate.runs.summary import kinds_of, merged_kinds


def line(image, *warnings):
    """A line of results with warnings: code, metric and text."""
    noted = [dict(zip(("code", "metric", "text"), each, strict=True)) for each in warnings]
    return {"image": image, "scores": {"vqascore": 0.5}, "models": {}, "warnings": noted}


def demo(*names):
    """The service's warnings about demo models."""
    meaning = "is a demo model: scores that rest on it mean nothing for real pictures"
    return [("demo_model", None, f"{name} {meaning}") for name in names]


LINES = [
    line(
        "a.png",
        *demo("vqa", "clip"),
        ("prompt_truncated", "clipscore", "clipscore: the prompt was cut"),
        ("prompt_truncated", "dsg", "dsg: the prompt was cut"),
        ("unknown_words", None, "words that vqa never learnt: zebra"),
        ("unknown_words", None, "words that clip never learnt: zebra, okapi"),
    ),
    line(
        "b.png",
        *demo("ocr"),
        ("prompt_truncated", "ocr", "ocr: the text was cut"),
        ("unknown_words", None, "words that vqa never learnt: gnu"),
    ),
]
DEMO = "vqa, clip, ocr are demo models: scores that rest on them mean nothing for real pictures"
CUT = "clipscore, dsg: the prompt was cut; ocr: the text was cut"
WORDS = "words that vqa never learnt: zebra; words that clip never learnt: zebra, okapi"


def test_a_warning_names_every_model_and_metric_that_it_is_about():
    """Of all rows, and each of them once; a row counts once."""
    found = kinds_of(LINES)

    assert [f"2 rows: {text}" for text in (DEMO, CUT, WORDS)] == [*map(str, found)]
    assert [None, "a.png", "a.png"] == [each.image for each in found]


def test_warnings_of_several_files_name_what_those_of_one_would():
    """As of shards, whose summaries are added."""
    parts = [each for one in LINES for each in kinds_of([one])]

    for _ in range(2):  # the parts stay as they are
        assert [*map(str, kinds_of(LINES))] == [*map(str, merged_kinds(parts))]
