"""`scoregate bench longtext` and `cvtg2k`: wanted words that were read."""

import json
from difflib import SequenceMatcher

import pytest

from tests.unit.client.bench.test_oneig import distance

ENGLISH = [
    {"prompt_id": 0, "category": "sign", "prompt": "p 0", "text": ["FRESH brews, every day", "every day"]},
    {"prompt_id": 7, "category": "menu", "prompt": "p 7", "text": ["Soup: 5.50"]},
]
READ = {  # by item: what was read, and the number of right words
    0: [("fresh every every day", 4), ("Brews DAY day day", 3)],
    7: [("soup 550", 2), ("", 0)],
}


def answered(read, name="item"):
    return [
        {name: item, "tile": tile, "answer": text}
        for item, tiles in read.items()
        for tile, (text, _) in enumerate(tiles)
    ]


def test_wanted_words_are_counted_over_all_pictures(bench, written):
    """Apart from case and punctuation, each as often as it is wanted."""
    files = written(ENGLISH, "data.jsonl"), f"a={written(answered(READ), 'read.csv')}"
    found = bench("longtext", *files, "--bootstrap", 0)

    assert (4 + 3 + 2 + 0) / (2 * 6 + 2 * 2) == pytest.approx(
        found["generators"][0]["mean"]["text"], abs=1e-6
    )
    assert {"sign": 7 / 12, "menu": 2 / 4} == pytest.approx(
        {row["figure"]: row["mean"]["a"] for row in found["categories"]}
    )
    assert "2 of 4 pictures" in found["generators"][0]["caution"]


def test_characters_of_a_chinese_file_are_counted(bench, written):
    """In their own case, also of a text of that file without any Chinese."""
    data = [
        {"prompt_id": 0, "category": "sign", "prompt": "p", "text": ["你好，世界", "5G"]},
        {"prompt_id": 1, "category": "sign", "prompt": "p", "text": ["AB"]},
    ]
    read = {0: [("你 世 5g", 3)], 1: [("Ab", 1)]}
    files = written(data, "data.jsonl"), f"a={written(answered(read), 'read.csv')}"

    assert (3 + 1) / (6 + 2) == bench("longtext", *files)["generators"][0]["mean"]["text"]


@pytest.mark.parametrize(("given", "right"), [([], 1), (["--all-remarks"], 2)])
def test_a_remark_of_the_reading_model_is_kept_as_in_the_released_script(bench, written, given, right):
    """Only the last one of its list is dropped there: a word that begins with the first is another word."""
    read = {7: [("addCriterionSoup 550No text recognized.", 0)]}
    files = written(ENGLISH[1:], "data.jsonl"), f"a={written(answered(read), 'read.csv')}"

    assert right / 2 == bench("longtext", *files, *given)["generators"][0]["mean"]["text"]


def test_texts_are_read_from_the_released_results(bench, written):
    """By the prompt's number in the name of the picture, with and without zeros."""
    lines = [
        {"image": f"out/{'0000' if item == 0 else item}_{tile + 1}.png", "ocr_results": text, "ocr_gt": []}
        for item, tiles in READ.items()
        for tile, (text, _) in enumerate(tiles)
    ]
    data = written(ENGLISH, "data.jsonl")
    files = f"a={written(lines, 'results.jsonl')}", f"b={written(answered(READ), 'read.csv')}"
    first, second = bench("longtext", data, *files, "--bootstrap", 0)["generators"]

    assert first["mean"] == second["mean"]


PROMPTS = {
    ("CVTG", 2, 0): ("A sign says 'Hello World' and a cup 'tea'.", ["hello", "world", "tea"]),
    ("CVTG-Style", 5, 3): ("A red 'STOP' next to 'go slow'.", ["stop", "go", "slow"]),
}
SEEN = {("CVTG", 2, 0): ("Hello wurld", 0.7), ("CVTG-Style", 5, 3): ("", 0.5)}


@pytest.fixture
def cvtg(tmp_path, written):
    """The authors' folder, in which most files are empty, and a table of answers."""
    for name in ("CVTG", "CVTG-Style"):
        (tmp_path / "CVTG-2K" / name).mkdir(parents=True)
        for area in range(2, 6):
            rows = [
                {"index": key[2], "prompt": prompt}
                for key, (prompt, _) in PROMPTS.items()
                if key[:2] == (name, area)
            ]
            (tmp_path / "CVTG-2K" / name / f"{area}.json").write_text(
                json.dumps({"data_list": rows}), "utf-8"
            )
    rows = [
        {"item": "/".join(map(str, key)), "question": question, "answer": answer}
        for key, both in SEEN.items()
        for question, answer in zip(("text", "clipscore"), both, strict=True)
    ]
    return str(tmp_path / "CVTG-2K"), f"a={written(rows, 'answers.csv')}"


def likeness(word, read):
    """The authors' figure for a word: to the most similar one by Ratcliff and Obershelp's matching."""
    best = max(read, key=lambda each: SequenceMatcher(None, each, word).ratio())
    return 1 - distance(word, best) / (max(len(word), len(best)) + 1e-5)


def test_words_in_single_quotes_are_counted_over_all_pictures(bench, cvtg):
    """Each has the likeness to the most similar word; CLIPScore is the mean over the pictures."""
    found = bench("cvtg2k", *cvtg, "--bootstrap", 0)
    read = {key: text.lower().split() or [""] for key, (text, _) in SEEN.items()}
    words = [(word, read[key]) for key, (_, wanted) in PROMPTS.items() for word in wanted]

    assert {
        "word accuracy": sum(word in seen for word, seen in words) / len(words),
        "NED": sum(likeness(*each) for each in words) / len(words),
        "CLIPScore": 0.6,
    } == pytest.approx(found["generators"][0]["mean"], abs=1e-6)
    assert {"CVTG 2": 1 / 3, "CVTG-Style 5": 0} == pytest.approx(
        {row["figure"]: row["mean"]["a"] for row in found["areas"]}
    )
    assert "unverified" in found["generators"][0]["caution"]
