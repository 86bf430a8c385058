"""`scoregate bench oneig` and `oneig_text`: alignment by class, and the text score of all tiles."""

import json
from random import Random
from statistics import fmean

import pytest

CATEGORIES = {"Anime_Stylization": "anime", "Portrait": "human", "General_Object": "object"}


def alignment(random, folder, written, column="prompt_en", suffix=""):
    """The files of six items with up to five questions, and a table of answers about four tiles of each."""
    prompts, answers, items = [], [], {}
    (folder / "Q_D").mkdir()
    for category, name in CATEGORIES.items():
        content = {}
        for id in ("000", "001"):
            count = random.randint(2, 5)
            parents = {str(q): [random.choice([0, *range(1, q)])] for q in range(1, count + 1)}
            texts = {str(q): f"Is {q} there?" for q in range(1, count + 1)}
            content[id] = {"question": json.dumps(texts), "dependency": json.dumps(parents)}
            prompts.append({"category": category, "id": id, column: f"prompt {id}", "type": "T"})
            items[name, id] = parents
            answers += [
                {
                    "item": f"{name}/{id}",
                    "tile": t,
                    "question": q,
                    "answer": random.choice(("Yes", "No", "yes")),
                }
                for t in range(4)
                for q in range(1, count + 1)
            ]
        (folder / "Q_D" / f"{name}{suffix}.json").write_text(json.dumps(content), "utf-8")
    prompts.append({"category": "Text_Rendering", "id": "000", column: "another dimension", "type": "T"})
    return written(prompts, "prompts.csv"), written(answers, "answers.csv"), items, answers


@pytest.mark.parametrize(("column", "suffix"), [("prompt_en", ""), ("prompt_cn", "_zh")])
def test_a_child_of_a_no_counts_0_and_its_own_children_do_not(bench, written, tmp_path, column, suffix):
    """The mean over the questions, the tiles, and the prompts, as the authors' code has it."""
    data, table, items, answers = alignment(Random(2), tmp_path, written, column, suffix)
    given = {(a["item"], a["tile"], a["question"]): a["answer"] == "Yes" for a in answers}
    of_class = {}
    for (name, id), parents in items.items():
        tiles = []
        for tile in range(4):
            right = {q: given[f"{name}/{id}", tile, int(q)] for q in parents}
            kept = [float(right[q] and (p == 0 or right[str(p)])) for q, [p] in parents.items()]
            tiles.append(sum(kept) / len(kept))
        of_class.setdefault(name, []).append(sum(tiles) / 4)
    found = bench("oneig", data, f"a={table}", "--questions", tmp_path / "Q_D", "--bootstrap", 0)

    whole = [value for each in of_class.values() for value in each]
    assert fmean(whole) == pytest.approx(found["generators"][0]["mean"]["alignment"], abs=1e-6)
    assert {name: fmean(each) for name, each in of_class.items()} == pytest.approx(
        {row["figure"]: row["mean"]["a"] for row in found["classes"]}, abs=1e-6
    )
    assert 6 == found["prompts"]


def test_an_item_without_questions_is_refused(refused, written, tmp_path):
    """With the file."""
    data, table, *_ = alignment(Random(2), tmp_path, written)
    (tmp_path / "Q_D" / "human.json").write_text("{}", "utf-8")

    assert "human.json: there are no questions about item 000" in refused(
        "bench", "oneig", data, f"a={table}", "--questions", tmp_path / "Q_D"
    )


def distance(a, b):
    """The Levenshtein distance by its definition."""
    above = list(range(len(b) + 1))
    for place, char in enumerate(a, 1):
        row = [place]
        for other, each in enumerate(b, 1):
            row.append(min(above[other] + 1, row[-1] + 1, above[other - 1] + (char != each)))
        above = row
    return above[-1]


TEXTS = {  # the cell of an item, what is compared, and its words
    "000": ("['Big Sale, 5G!', 'café']", "Big Sale 5G café", ["Big", "Sale", "5G", "café"]),
    "001": ("['one', 'two two']", "one two two", ["one", "two", "two"]),
}
READ = {  # by item: what was read in each tile, what is compared, and the words that are right
    "000": [("Big Sale 5G café", "Big Sale 5G café", 4), ("big  SALE\n5G.", "big SALE 5G", 1)],
    "001": [
        ("two one", "two one", 2),
        ("No text recognized.", "", 0),
        ("addCriterion\none two two", "one two two", 3),
    ],
}


def text_files(written, column="prompt_en", texts=TEXTS, read=READ):
    rows = [{"id": id, column: f"prompt {id}", "text_content": each[0]} for id, each in texts.items()]
    answers = [
        {"item": id, "tile": tile, "answer": each[0]}
        for id, tiles in read.items()
        for tile, each in enumerate(tiles)
    ]
    return written(rows, "texts.csv"), f"a={written(answers, 'read.csv')}"


@pytest.mark.parametrize(("cap", "given"), [(100, []), (5, ["--cap", "5"])])
def test_the_text_score_is_of_the_means_over_all_tiles(bench, written, cap, given):
    """Case counts and punctuation does not; words are counted as often as they are wanted."""
    [row] = bench("oneig_text", *text_files(written), *given, "--bootstrap", 0)["generators"]
    tiles = [(TEXTS[id], each) for id, tiles in READ.items() for each in tiles]
    distances = [distance(text[1], each[1]) for text, each in tiles]
    ed, cr = fmean(distances), fmean(not each for each in distances)
    wac = sum(each[2] for _, each in tiles) / sum(len(text[2]) for text, _ in tiles)

    assert {
        "ED": ed,
        "CR": cr,
        "WAC": wac,
        "text": 1 - min(cap, ed) * (1 - cr) * (1 - wac) / cap,
    } == pytest.approx(row["mean"], abs=1e-6)
    assert "2 of 200 prompts" in row["caution"]


def test_characters_of_a_chinese_text_are_words(bench, written):
    """Without spaces; the mean distance counts up to 50."""
    texts, read = {"000": ("['你好 世界']",)}, {"000": [("世好你，A",), ("x" * 400,)]}
    [row] = bench("oneig_text", *text_files(written, "prompt_cn", texts, read), "--bootstrap", 0)[
        "generators"
    ]
    distances = [distance("你好世界", "世好你A"), 400]

    assert {
        "ED": fmean(distances),
        "CR": 0,
        "WAC": 3 / 8,
        "text": 1 - 50 * (1 - 3 / 8) / 50,
    } == pytest.approx(row["mean"], abs=1e-6)


def test_intervals_of_the_text_score_draw_prompts(bench, written):
    """The score is computed anew for each drawing."""
    texts = {f"{n:03}": (f"['word {n}']",) for n in range(40)}
    read = {id: [(f"word {int(id)}" if int(id) % 2 else "x",)] * 4 for id in texts}
    [row] = bench("oneig_text", *text_files(written, texts=texts, read=read))["generators"]
    low, high = row["interval"]["text"]

    assert low < row["mean"]["text"] < high
