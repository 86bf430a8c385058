"""`scoregate bench dpg`: the released script's figures, its quirks, and the forms of answers."""

import json
from random import Random
from statistics import fmean

import pytest

from scoregate.cli.main import main

WORDS = ("yes", "yes", "no", "Yes")
TAGS = ("entity - whole", "entity - part", "attribute - color", "relation - spatial", "other - count")


def row(item, id, parents="0", tag="entity - whole", question=None):
    """A row of the authors' file."""
    return {
        "item_id": item,
        "text": f"prompt {item}",
        "keywords": "",
        "proposition_id": id,
        "dependency": parents,
        "tuple": f"{tag} (cup, {id})",
        "question_natural_language": question or f"Is it {id}, or not?",
    }


def made(random):
    """Thirty items: parents come before and after their children, and a zero reaches grandchildren."""
    rows = [row("first", 1), row("first", 2)]
    for item in range(30):
        for id in range(1, random.randint(2, 8)):
            others = [each for each in range(1, 4) if each != id and random.random() < 0.4]
            parents = ", ".join(map(str, others)) or "0"
            rows.append(row(f"item{item}", id, parents, random.choice(TAGS)))
    known = {(each["item_id"], each["proposition_id"]) for each in rows}
    for each in rows:
        kept = [p for p in each["dependency"].split(", ") if (each["item_id"], int(p)) in known]
        each["dependency"] = ", ".join(kept) or "0"
    return rows


def by_hand(rows, answers, tiles=4):
    """The released script's figures, computed plainly: overall, and by category of both levels."""
    overall, categories = [], {}
    for item in dict.fromkeys(each["item_id"] for each in rows):
        own = [each for each in rows if each["item_id"] == item]
        scores, right = [], {}
        for tile in range(tiles):
            right = {
                q["proposition_id"]: float(answers[item, tile, q["proposition_id"]] == "yes") for q in own
            }
            counted = dict(right)
            for q in own:
                parents = [int(each) for each in q["dependency"].split(",")]
                if any(parent and counted[parent] == 0 for parent in parents):
                    counted[q["proposition_id"]] = 0.0
            scores.append(fmean(counted.values()))
        overall.append(fmean(scores))
        for q in own:
            tag = q["tuple"].split(" (")[0]
            for name in (tag, tag.split(" - ")[0]):
                categories.setdefault(name, []).append(right[q["proposition_id"]])
    return {"overall": fmean(overall)} | {name: fmean(each) for name, each in categories.items()}


@pytest.fixture
def made_answers(written):
    """The files of some data and of answers about four tiles of each item, with both as they were made."""
    random = Random(7)
    rows = made(random)
    keys = [(r["item_id"], tile, r["proposition_id"]) for r in rows for tile in range(4)]
    answers = {key: random.choice(WORDS) for key in keys}
    table = [
        {"item": item, "tile": tile, "question": id, "answer": answer}
        for (item, tile, id), answer in answers.items()
        if (item, id) != ("first", 1)
    ]
    return written(rows, "dpg_bench.csv"), written(table, "answers.csv"), rows, answers


def figures(content, generator="a"):
    """The figures of one generator in all tables."""
    [row] = [each for each in content["generators"] if each["generator"] == generator]
    return row["mean"] | {each["figure"]: each["mean"][generator] for each in content["categories"]}


def test_the_figures_are_those_of_the_released_script(bench, made_answers):
    """Without the first row of the file; parents after their children zero nothing."""
    data, answers, rows, given = made_answers
    found = bench("dpg", data, f"a={answers}", "--bootstrap", 20)

    assert by_hand(rows[1:], given) == pytest.approx(figures(found), abs=1e-6)
    assert (31, 124) == (found["prompts"], found["generators"][0]["pictures"])


def small(written, rows, answers, name="t.csv"):
    """The files of data whose first item is of no interest, and of answers by item, tile and question."""
    data = written([row("none", 1), row("none", 2), *rows], "dpg_bench.csv")
    keys = {("none", 0, 2): "yes"} | answers
    table = [{"item": i, "tile": t, "question": q, "answer": answer} for (i, t, q), answer in keys.items()]
    return data, f"a={written(table, name)}"


CHAIN = [row("x", 1), row("x", 2, "1"), row("x", 3, "2", "other - count")]
NO_ROOT = {("x", 0, 1): "no", ("x", 0, 2): "yes", ("x", 0, 3): "yes"}


@pytest.mark.parametrize(("dependencies", "score"), [("released", 0), ("direct", 1 / 3), ("none", 2 / 3)])
def test_a_zero_is_carried_on_unless_an_option_says_otherwise(bench, written, dependencies, score):
    """A child of a no, and its own child; the other item has 1."""
    found = bench("dpg", *small(written, CHAIN, NO_ROOT), "--dependencies", dependencies)

    assert (1 + score) / 2 == pytest.approx(found["generators"][0]["mean"]["overall"])


@pytest.mark.parametrize(("categories", "count", "entity"), [("released", 1, 2 / 3), ("tiles", 0, 2 / 5)])
def test_categories_ignore_dependencies_unless_an_option_says_otherwise(
    bench, written, categories, count, entity
):
    """Of the last tile alone, or of all tiles with dependencies."""
    tiles = (
        NO_ROOT | {(i, 1, q): a for (i, _, q), a in NO_ROOT.items()} | {("x", 0, 1): "yes", ("x", 0, 2): "no"}
    )
    found = figures(bench("dpg", *small(written, CHAIN, tiles), "--categories", categories))

    assert (count, pytest.approx(entity)) == (found["other"], found["entity"])


def test_an_answer_is_right_if_it_is_exactly_yes(bench, written):
    """`--any-yes` also takes other forms of it, and no other word."""
    answers = {("x", 0, 1): "Yes.", ("x", 0, 2): "yes, it is", ("x", 0, 3): "yesterday"}
    files = small(written, CHAIN, answers)
    means = [bench("dpg", *files, *more)["generators"][0]["mean"]["overall"] for more in ([], ["--any-yes"])]

    assert [1 / 2, (1 + 2 / 3) / 2] == pytest.approx(means)


def test_the_first_item_is_dropped_if_a_child_names_its_first_question(bench, written):
    """The released script skips that row; `--first-row` uses it."""
    data = written([row("x", 1), row("x", 2, "1"), row("y", 1)], "dpg_bench.csv")
    answers = [{"item": item, "question": q, "answer": "yes"} for item, q in (("x", 1), ("x", 2), ("y", 1))]
    partly, whole = written(answers[1:], "a.csv"), written(answers, "b.csv")
    [row_of] = bench("dpg", data, f"a={partly}")["generators"]
    [whole_row] = bench("dpg", data, f"a={whole}", "--first-row")["generators"]

    assert (1, True) == (row_of["pictures"], "left out without all answers: 1" in row_of["caution"])
    assert (2, False) == (whole_row["pictures"], "without all answers" in whole_row["caution"])


def test_answers_of_the_released_script_are_read_from_its_own_file(bench, written, made_answers, tmp_path):
    """Each tile by its box; questions and answers may have commas."""
    data, answers, rows, given = made_answers
    questions = {(r["item_id"], r["proposition_id"]): r["question_natural_language"] for r in rows}
    lines = [
        f"out, 1/{item}.png, ({512 * (tile % 2)}, {512 * (tile // 2)}, {512 * (tile % 2) + 512},"
        f" {512 * (tile // 2) + 512}), {questions[item, id]}, {answer}"
        for (item, tile, id), answer in given.items()
        if (item, id) != ("first", 1)
    ]
    (tmp_path / "m_detail.txt").write_text("\n".join(lines), "utf-8")
    files = f"a={answers}", f"b={tmp_path / 'm_detail.txt'}"
    found = bench("dpg", data, *files, "--bootstrap", 0)

    assert figures(found, "a") == figures(found, "b")


def test_prompts_are_printed_for_a_generator(written, capsys):
    """With the name of the sheet, its grid and a seed for each of its pictures; the first row counts."""
    data = written([row("x", 1), row("y", 1)], "dpg_bench.csv")
    assert 0 == main(["bench", "dpg", data, "--prompts"])
    lines = [json.loads(line) for line in capsys.readouterr().out.splitlines()]

    assert ["x.png", "y.png"] == [name for line in lines for name in line["files"]]
    assert {
        "id": "x",
        "prompt": "prompt x",
        "files": ["x.png"],
        "seeds": [0, 1, 2, 3],
        "grid": "2x2",
    } == lines[0]


def test_an_item_whose_only_row_is_skipped_is_none(bench, refused, written):
    """The released script does not know it either; its picture is one of no prompt."""
    data = written([row("x", 1), row("y", 1)], "dpg_bench.csv")
    answers = f"a={written([{'item': 'y', 'answer': 'yes'}], 'a.csv')}"
    found = bench("dpg", data, answers, "--complete", "--bootstrap", 0)
    alone = written([row("x", 1)], "alone.csv")

    assert (1, 1) == (found["prompts"], found["generators"][0]["mean"]["overall"])
    assert 2 == bench("dpg", data, answers, "--first-row", "--bootstrap", 0)["prompts"]
    assert "there is no question after the first row" in refused("bench", "dpg", alone, answers)


def test_a_prompt_without_all_answers_is_an_error_if_all_are_wanted(refused, written):
    """With the item; by default the others have their figures."""
    data = written([row("x", 1), row("x", 2, "1"), row("y", 1)], "dpg_bench.csv")
    answers = [{"item": item, "question": q, "answer": "yes"} for item, q in (("x", 2), ("y", 1))]

    assert "item x has not all answers" in refused(
        "bench", "dpg", data, f"a={written(answers, 'a.csv')}", "--complete"
    )


def test_generators_may_stand_after_options(bench, written):
    """As in any command."""
    data, answers = small(written, CHAIN, NO_ROOT)

    assert bench("dpg", data, answers, "--seed", 1) == bench("dpg", data, "--seed", 1, answers)


def test_intervals_draw_prompts_and_generators_are_compared(bench, written):
    """Four tiles of a prompt that are alike say as much as one; both generators have all prompts."""
    rows = [row("none", 1)] + [row(f"i{n}", 1) for n in range(40)]
    data = written(rows, "dpg_bench.csv")

    def answered(name, tiles, right):
        table = [
            {"item": f"i{n}", "tile": tile, "question": 1, "answer": "yes" if right(n) else "no"}
            for n in range(40)
            for tile in range(tiles)
        ]
        return written(table, name)

    files = (
        f"a={answered('a.csv', 4, lambda n: n % 2)}",
        f"b={answered('b.csv', 1, lambda n: n % 2)}",
        f"c={answered('c.csv', 1, lambda n: True)}",
    )
    found = bench("dpg", data, *files)
    ends = [row["interval"]["overall"] for row in found["generators"]]
    [last] = [each for each in found["differences"] if (each["a"], each["figure"]) == ("b", "overall")]

    assert ends[0] == ends[1]
    assert ends[0][0] < 0.5 < ends[0][1]
    assert (40, "prompt", -0.5) == (found["compared"], found["cluster"], pytest.approx(last["difference"]))


def test_a_question_is_named_by_its_number_or_its_text(refused, written):
    """So two rows that name it differently are two answers to it."""
    twice = NO_ROOT | {("x", 0, "Is it 1, or not?"): "no"}

    assert "item x has a second answer to question 1" in refused(
        "bench", "dpg", *small(written, CHAIN, twice)
    )


@pytest.mark.parametrize(
    ("change", "line"),
    [
        ({"dependency": "one"}, "row 3: proposition_id or dependency is no number"),
        ({"proposition_id": ""}, "row 3: proposition_id or dependency is no number"),
    ],
)
def test_data_that_cannot_be_read_is_refused_with_its_row(refused, written, change, line):
    """In one line."""
    files = small(written, [CHAIN[0] | change, *CHAIN[1:]], NO_ROOT)

    assert line in refused("bench", "dpg", *files)


@pytest.mark.parametrize(
    ("given", "line"),
    [
        ([], "name a generator: NAME=PATH"),
        (["a={0}", "a={0}"], "are both named a: name one as NAME=PATH"),
        (["{0}.gone"], "t.csv.gone: No such file or directory; did you mean"),
        (["a/b={0}"], "part of the name of a file"),
    ],
)
def test_generators_need_names_of_their_own(refused, written, given, line):
    """One each, that may stand in the name of a file."""
    data, answers = small(written, CHAIN, NO_ROOT)

    assert line in refused("bench", "dpg", data, *(each.format(answers[2:]) for each in given))


def test_a_generator_is_named_as_in_other_commands(bench, written):
    """A name may have the sign before its path, and a path without a name is named by its file."""
    data, answers = small(written, CHAIN, NO_ROOT)
    file = answers[2:]

    for given, name in ((f"cfg=7={file}", "cfg=7"), (file, "t")):
        [found] = bench("dpg", data, given)["generators"]
        assert name == found["generator"]
