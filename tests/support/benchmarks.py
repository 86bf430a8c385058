"""The least data of each benchmark of generators: two items, and the best and the worst answers to each."""

import csv
import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any


def jsonl(path: Path, *rows: Any) -> Path:
    """Write a file of JSON Lines, with its folders."""
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("".join(json.dumps(row) + "\n" for row in rows), "utf-8")
    return path


def table(path: Path, *rows: Mapping[str, Any]) -> Path:
    """Write a file of CSV."""
    with path.open("w", encoding="utf-8", newline="") as file:
        writer = csv.DictWriter(file, rows[0])
        writer.writeheader()
        writer.writerows(rows)
    return path


@dataclass(frozen=True)
class Sample:
    """
    Attributes:
        items: the ids of two items.
        best, worst: the answer to each question, by number.
        figures: their ends, for the worst answers and for the best.
        details: of the metric whose answers they are: the names of outputs, or the texts of questions.
        files: the names of the pictures of the first item, the generator's own name left open.
        prompts: the number of items.
        of: the paper's number of prompts.
        words: further arguments.
        pooled: whether figures are means over all pictures.
        partial: whether a picture without answers is left out alone.
    """

    data: Path
    items: tuple[str, str]
    best: Sequence[Any]
    worst: Sequence[Any]
    figures: Mapping[str, tuple[float, float]]
    details: Sequence[str]
    files: Sequence[str]
    of: int
    prompts: int = 2
    words: Sequence[str] = ()
    pooled: bool = False
    partial: bool = False

    def rows(self, item: int, answers: Sequence[Any], tile: int = 0) -> list[dict[str, Any]]:
        """A row of a table for each answer about a picture of an item."""
        return [
            {"item": self.items[item], "tile": tile, "question": id, "answer": answer}
            for id, answer in enumerate(answers, 1)
        ]

    def line(self, metrics: Sequence[str], item: int, *, best: bool, tile: int = 0) -> dict[str, Any]:
        """A line of results of scoring about a picture of an item."""
        answers = self.best if best else self.worst
        questions = [
            {
                "text": text,
                "answer": "yes" if best else "no",
                "probability": float(best),
                "score": float(best),
            }
            for text in self.details
        ]
        pairs = zip(self.details, answers, strict=False)
        outputs = {name: {"value": answer} for name, answer in pairs}
        known = {"questions": questions, "read": answers[0], "outputs": outputs, "rubric": "r"}
        return {
            **{"row": 1, "image": f"{item}-{tile}.png", "prompt": "p", "sha256": "0", "errors": {}},
            "scores": dict.fromkeys(metrics, float(best)),
            "details": dict.fromkeys(metrics, known),
            "columns": {"item": self.items[item], "tile": tile},
            "models": {"judge": "somebody/else@1"},
        }


def dpg(folder: Path) -> Sample:
    rows = (
        {
            **{"item_id": item, "text": f"prompt {item}", "keywords": "", "proposition_id": 1},
            **{"dependency": "0", "tuple": "entity - whole (cup)", "question_natural_language": "Is it?"},
        }
        for item in "xy"
    )
    data = table(folder / "dpg.csv", *rows)
    figures = {"overall": (0.0, 1.0), "entity": (0.0, 1.0)}
    return Sample(
        data, ("x", "y"), ["yes"], ["no"], figures, ["Is it?"], ["x.png"], 1065, words=["--first-row"]
    )


def geneval2(folder: Path) -> Sample:
    line = {"atom_count": 3, "vqa_list": [["Is a?", "Yes"], ["Is b?", "Yes"]], "skills": ["object", "count"]}
    data = jsonl(folder / "d.jsonl", *(line | {"prompt": f"prompt {n}"} for n in range(2)))
    figures = dict.fromkeys(("arithmetic", "geometric", "object", "count"), (0.0, 1.0))
    return Sample(data, ("0", "1"), [1, 1], [0, 0], figures, ["Is a?", "Is b?"], ["0.png"], 800)


def oneig(folder: Path) -> Sample:
    rows = ({"category": "Portrait", "id": f"00{n}", "prompt_en": f"prompt {n}"} for n in range(2))
    entry = {"question": {"1": "Is it?"}, "dependency": {"1": [0]}}
    jsonl(folder / "Q_D" / "human.json", dict.fromkeys(("000", "001"), entry))
    return Sample(
        table(folder / "d.csv", *rows),
        ("human/000", "human/001"),
        ["Yes"],
        ["No"],
        {"alignment": (0.0, 1.0)},
        ["Is it?"],
        ["human/{generator}/000.png"],
        695,
        words=["--questions", str(folder / "Q_D")],
    )


def oneig_text(folder: Path) -> Sample:
    rows = ({"id": f"00{n}", "prompt_en": "p", "text_content": "['open']"} for n in range(2))
    return Sample(
        table(folder / "d.csv", *rows),
        ("000", "001"),
        ["open"],
        ["shut"],
        {"CR": (0.0, 1.0), "WAC": (0.0, 1.0)},
        (),
        ["text/{generator}/000.png"],
        200,
        pooled=True,
    )


def longtext(folder: Path) -> Sample:
    rows = ({"prompt_id": n, "category": "s", "prompt": "p", "text": ["open"]} for n in range(2))
    data = jsonl(folder / "d.jsonl", *rows)
    files = [f"0000_{n}.png" for n in range(1, 5)]
    return Sample(data, ("0", "1"), ["open"], ["shut"], {"text": (0.0, 1.0)}, (), files, 160, pooled=True)


def cvtg2k(folder: Path) -> Sample:
    content = {"data_list": [{"index": n, "prompt": "a 'sign'"} for n in range(2)]}
    jsonl(folder / "CVTG-2K" / "CVTG" / "2.json", content)
    return Sample(
        folder / "CVTG-2K",
        ("CVTG/2/0", "CVTG/2/1"),
        ["sign", 1.0],
        ["x", 0.0],
        {"word accuracy": (0.0, 1.0), "CLIPScore": (0.0, 1.0)},
        (),
        ["CVTG/2/0.png"],
        2000,
    )


def compbench(folder: Path) -> Sample:
    (folder / "data").mkdir()
    (folder / "data" / "color_val.txt").write_text("a cup\na bench\n", "utf-8")
    phrases = table(folder / "p.csv", *({"item": f"color/{n}", "phrase": "a cup"} for n in range(2)))
    return Sample(
        folder / "data",
        ("color/0", "color/1"),
        [1],
        [0],
        {"color": (0.0, 1.0)},
        ["a cup?"],
        [f"color/samples/a cup_{n:06}.png" for n in range(10)],
        900,
        words=["--phrases", str(phrases)],
        pooled=True,
    )


def tiif(folder: Path) -> Sample:
    for name, row in {
        "prompts": {"short_description": "s", "long_description": "l"},
        "eval_prompts": {"type": "style", "yn_question_list": ["a?"], "yn_answer_list": ["yes"]},
    }.items():
        jsonl(folder / "tiif" / f"testmini_{name}" / f"style_{name}.jsonl", row, row)
    return Sample(
        folder / "tiif",
        ("style/short/0", "style/short/1"),
        ["YES"],
        ["no"],
        {"overall short": (0.0, 1.0)},
        ["a?"],
        ["style/{generator}/short_description/0.png"],
        4,
        prompts=4,
    )


def unigen(folder: Path) -> Sample:
    points = json.dumps({"Testpoints": ["Style"], "Testpoint Description": ["x"]})
    rows = ({"index": n, "prompt_en": "p", "sub_dims_en": points} for n in range(2))
    return Sample(
        table(folder / "d.csv", *rows),
        ("0", "1"),
        [1],
        [0],
        {"Style": (0.0, 1.0)},
        ['Style, "x"'],
        [f"0_{n}.png" for n in range(4)],
        600,
        pooled=True,
        partial=True,
    )


def gedit(folder: Path) -> Sample:
    row = {"task_type": "t", "instruction": "x", "instruction_language": "en"}
    return Sample(
        jsonl(folder / "d.jsonl", row | {"key": "a"}, row | {"key": "b"}),
        ("t/en/a", "t/en/b"),
        [10] * 4,
        [0] * 4,
        dict.fromkeys(("G_SC", "G_PQ", "G_O"), (0.0, 10.0)),
        ("success", "restraint", "nature", "clean"),
        ["fullset/t/en/a.png"],
        606,
    )


def imgedit(folder: Path) -> Sample:
    edits = {n: {"id": f"{n}_before.png", "prompt": "p", "edit_type": "add"} for n in "ab"}
    return Sample(
        jsonl(folder / "d.json", edits),
        ("a", "b"),
        [5] * 3,
        [1] * 3,
        {"overall": (1.0, 5.0)},
        ("compliance", "appearance", "detail"),
        ["a.png"],
        737,
    )


def kris(folder: Path) -> Sample:
    edit = {"ori_img": "a.png", "gt_img": "", "ins_en": "x", "explain_en": "y"}
    jsonl(folder / "kris" / "color_change" / "annotation.json", {"1": edit, "2": edit})
    return Sample(
        folder / "kris",
        ("color_change/1", "color_change/2"),
        [5] * 3,
        [1] * 3,
        dict.fromkeys(("overall", "factual"), (0.0, 100.0)),
        ("consistency", "quality", "instruction"),
        ["color_change/1.png"],
        1267,
    )


def wise(folder: Path) -> Sample:
    rows = [{"prompt_id": n, "Prompt": "p", "Explanation": "e", "Category": "time"} for n in (1, 2)]
    return Sample(
        jsonl(folder / "d.json", rows),
        ("1", "2"),
        [2] * 3,
        [0] * 3,
        {"time": (0.0, 1.0)},
        ("consistency", "realism", "aesthetic_quality"),
        ["1.png"],
        1000,
    )


def wise_verified(folder: Path) -> Sample:
    found = wise(folder)
    return Sample(found.data, found.items, [1], [0], found.figures, ["score"], found.files, found.of)


SAMPLES: dict[str, Callable[[Path], Sample]] = {
    make.__name__: make
    for make in (
        *(dpg, geneval2, oneig, oneig_text, longtext, cvtg2k, compbench, tiif, unigen),
        *(gedit, imgedit, kris, wise, wise_verified),
    )
}
