"""Means of prompts that have unequal numbers of pictures: over prompts, or over all pictures."""

import json

import pytest

GEDIT = {"task_type": "t", "instruction": "x", "instruction_language": "en"}
KRIS = {"ori_img": "a.jpg", "gt_img": "", "ins_en": "x", "explain_en": "y"}


def geneval2(folder, written):
    line = {"atom_count": 3, "vqa_list": [["Is a?", "Yes"]] * 2, "skills": ["object", "count"]}
    rows = [line | {"prompt": prompt} for prompt in "ab"]
    return (
        written(rows, "d.jsonl"),
        ("0", "1"),
        (1, 2),
        (1, 0),
        ("arithmetic", "geometric", "object", "count"),
    )


def gedit(folder, written):
    data = written([GEDIT | {"key": key} for key in "ab"], "d.jsonl")
    return data, ("t/en/a", "t/en/b"), (1, 2, 3, 4), (10, 0), ("G_SC", "G_PQ", "G_O")


def imgedit(folder, written):
    (folder / "d.json").write_text(
        json.dumps({n: {"id": n, "prompt": "p", "edit_type": "add"} for n in "ab"})
    )
    return folder / "d.json", ("a", "b"), (1, 2, 3), (5, 1), ("overall",)


def kris(folder, written):
    (folder / "color_change").mkdir()
    file = folder / "color_change" / "annotation.json"
    file.write_text(json.dumps({"1": KRIS, "2": KRIS}))
    return folder, ("color_change/1", "color_change/2"), (1, 2, 3), (5, 1), ("overall", "factual")


def wise(folder, written, outputs=(1, 2, 3), best=2):
    rows = [{"prompt_id": n, "Prompt": "p", "Explanation": "e", "Category": "time"} for n in (1, 2)]
    (folder / "d.json").write_text(json.dumps(rows))
    return folder / "d.json", ("1", "2"), outputs, (best, 0), ("time",)


def wise_verified(folder, written):
    return wise(folder, written, (1,), 1)


def tiif(folder, written):
    for name, content in {
        "prompts": {"short_description": "s", "long_description": "l"},
        "eval_prompts": {"type": "style", "yn_question_list": ["a?"], "yn_answer_list": ["yes"]},
    }.items():
        (folder / f"testmini_{name}").mkdir()
        file = folder / f"testmini_{name}" / f"style_{name}.jsonl"
        file.write_text((json.dumps(content) + "\n") * 2)
    return folder, ("style/short/0", "style/short/1"), (1,), ("yes", "no"), ("overall short",)


def cvtg2k(folder, written):
    (folder / "CVTG").mkdir()
    content = {"data_list": [{"index": n, "prompt": "a 'sign'"} for n in (0, 1)]}
    (folder / "CVTG" / "2.json").write_text(json.dumps(content))
    return folder, ("CVTG/2/0", "CVTG/2/1"), (1,), ("sign", "x"), ("word accuracy",)


ENDS = {imgedit: (1, 5), kris: (0, 100), gedit: (0, 10)}  # of the figures of the worst and the best picture


@pytest.fixture
def given(written):
    """Answers about three pictures of the first item, the best, and one of the second, the worst."""

    def given(items, questions, answers, more=None):
        return written(
            [
                {"item": item, "tile": tile, "question": id, "answer": answer}
                for item, answer, tiles in zip(items, answers, (3, 1), strict=True)
                for tile in range(tiles)
                for id in questions
            ]
            + [
                row | {"tile": tile}
                for row in more or ()
                for tile in range(3 if row["item"] == items[0] else 1)
            ],
            "answers.csv",
        )

    return given


@pytest.mark.parametrize("made", [geneval2, gedit, imgedit, kris, wise, wise_verified, tiif, cvtg2k])
def test_a_prompt_counts_once_where_the_paper_has_one_picture_of_each(bench, tmp_path, written, given, made):
    """However many pictures it has: the best prompt and the worst have the mean in the middle."""
    data, items, questions, answers, names = made(tmp_path, written)
    more = [{"item": item, "question": 2, "answer": 0.5} for item in items] if made is cvtg2k else []
    low, high = ENDS.get(made, (0, 1))
    file = given(items, questions, answers, more)
    [row] = bench(made.__name__, data, f"a={file}", "--bootstrap", 0)["generators"]

    assert dict.fromkeys(names, (low + high) / 2) == pytest.approx(
        {name: row["mean"][name] for name in names}
    )
    assert (4, True) == (row["pictures"], "1 to 3 of 1 pictures of a prompt" in row["caution"])
    assert "counts more" not in row["caution"]


def compbench(folder, written):
    (folder / "color_val.txt").write_text("a cup\na bench\n")
    phrases = [{"item": f"color/{n}", "phrase": "a cup"} for n in (0, 1)]
    more = "--phrases", written(phrases, "p.csv")
    return folder, ("color/0", "color/1"), (1, 0), "color", more


def longtext(folder, written):
    rows = [{"prompt_id": n, "category": "s", "prompt": "p", "text": ["open"]} for n in (0, 1)]
    return written(rows, "d.jsonl"), ("0", "1"), ("open", ""), "text", ()


def oneig_text(folder, written):
    rows = [{"id": f"00{n}", "prompt_en": "p", "text_content": "['open']"} for n in (0, 1)]
    return written(rows, "d.csv"), ("000", "001"), ("open", ""), "CR", ()


def unigen(folder, written):
    points = json.dumps({"Testpoints": ["Style"], "Testpoint Description": ["x"]})
    rows = [{"index": n, "prompt_en": "p", "sub_dims_en": points} for n in (0, 1)]
    return written(rows, "d.csv"), ("0", "1"), (1, 0), "Style", ()


@pytest.mark.parametrize("made", [compbench, longtext, oneig_text, unigen])
def test_figures_over_all_pictures_say_that_some_prompts_count_more(bench, tmp_path, written, given, made):
    """As by the authors' code, which has as many pictures of each prompt; then nothing is said."""
    data, items, answers, name, more = made(tmp_path, written)
    unequal = given(items, (1,), answers)
    [row] = bench(made.__name__, data, f"a={unequal}", *more, "--bootstrap", 0)["generators"]
    equal = written([{"item": item, "answer": answers[0]} for item in items], "equal.csv")
    [other] = bench(made.__name__, data, f"a={equal}", *more, "--bootstrap", 0)["generators"]

    assert 0.75 == row["mean"][name]
    assert "1 to 3 of" in row["caution"]
    assert "a prompt with more pictures counts more" in row["caution"]
    assert "counts more" not in other["caution"]
