"""The least files of each benchmark of metrics, with all columns of the authors' releases, in their order."""

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from tests.support.benchmarks import jsonl, table

SCORES = "m.csv"


@dataclass(frozen=True)
class Release:
    """
    Attributes:
        call: words of the command; a name is that of a file.
        files: their rows, or JSON, by name.
        scores: rows of the scores of a metric m; none in GenEval, which compares generators.
        counts: of the figures of m without the last of these rows.
        key: the columns that join the scores with the data; empty if these are not joined.
        unknown: what a refusal says of scores of other items, if they are not joined.
        twice: what it says of a second score of a picture.
    """

    call: str
    files: Mapping[str, Any]
    scores: Sequence[Mapping[str, Any]] = ()
    counts: Mapping[str, int] = field(default_factory=dict)
    key: str = ""
    unknown: str = ""
    twice: str = ""

    @property
    def words(self) -> list[str]:
        """The words of the command, with the file of scores."""
        return [*self.call.split(), *(["--scores", SCORES] if self.scores else [])]

    def write(self, folder: Path) -> None:
        """Write all files."""
        for name, rows in {**self.files, SCORES: self.scores}.items():
            if name.endswith(".json"):
                (folder / name).write_text(json.dumps(rows), "utf-8")
            elif rows:
                (table if name.endswith(".csv") else jsonl)(folder / name, *rows)


def named(header: str, rows: Iterable[Iterable[Any]]) -> list[dict[str, Any]]:
    """The rows of a table with these columns."""
    return [dict(zip(header.split(","), row, strict=True)) for row in rows]


def ts2() -> Release:
    ranks = enumerate(("0", "1a", "1a", "2"))
    rows = [[0, "a cup", f"images/000-0{n}.jpg", "SD2.1", rank] for n, rank in ranks]
    return Release(
        "ts2 metadata.csv",
        {"metadata.csv": named("id,target_prompt,file_name,image_source,rank", rows)},
        [{"file_name": row[2], "m": 1 - n / 4} for n, row in enumerate(rows)],
        {"images": 4, "dropped": 1},
        "file_name",
    )


def geneval() -> Release:
    tasks = ("single_object", "two_object", "counting", "colors", "position", "color_attr")
    rows = [
        {
            "filename": f"{n:05d}/samples/0000.png",
            "tag": tag,
            "prompt": f"a photo of a {tag}",
            "correct": n % 2 == 0,
            "reason": "" if n % 2 == 0 else "expected cup>=1, found 0",
            "metadata": json.dumps({"tag": tag, "include": [{"class": "cup", "count": 1}], "prompt": tag}),
            "details": json.dumps({"cup": [[0.0, 0.0, 9.0, 9.0, 0.9]]}),
        }
        for n, tag in enumerate(tasks)
    ]
    return Release("geneval m=results.jsonl", {"results.jsonl": rows})


def genai() -> Release:
    models = {f"{n:05d}": {"DALLE_3": [n + 1, 5, 4], "SDXL_Base": [1, n + 1, 2]} for n in range(3)}
    prompts = {id: {"id": id, "prompt": "a cup", "models": each} for id, each in models.items()}
    skills = {"attribute": [0, 1], "counting": [2]}
    return Release(
        "genai genai_image.json --skills genai_skills.json",
        {"genai_image.json": prompts, "genai_skills.json": skills},
        [{"id": id, "model": model, "m": n} for n, id in enumerate(models) for model in models[id]],
        {"n": 5, "dropped": 1},
        "id, model",
    )


def of_pairs(call: str, files: Mapping[str, Any]) -> Release:
    """Scores of two captions and two pictures of two items."""
    places = [(n, c, i) for n in (0, 1) for c in (0, 1) for i in (0, 1)]
    return Release(
        call,
        files,
        [{"label": f"{n}_c{c}_i{i}", "m": 1.0 - abs(c - i)} for n, c, i in places],
        {"items": 1, "incomplete": 1},
        unknown=f"{SCORES}, column item: the benchmark has no item 90",
        twice=f"{SCORES}, column item: 1 has two scores of caption 1 with image 1",
    )


def winoground() -> Release:
    columns = "id,image_0,image_1,caption_0,caption_1,tag,secondary_tag,num_main_preds,collapsed_tag"
    more = ["a cup", "cup a", "Noun", "", 1, "Object"]
    rows = named(columns, ([n, f"ex_{n}_img_0", f"ex_{n}_img_1", *more] for n in (0, 1)))
    tags = {"0": ["NonCompositional"], "1": []}
    return of_pairs(
        "winoground examples.jsonl --tags new_tag_assignments.json",
        {"examples.jsonl": rows, "new_tag_assignments.json": tags},
    )


def eqben() -> Release:
    row = {"image0": "eqbenag/0.jpg", "image1": "eqbenag/1.jpg", "caption0": "a cup", "caption1": "cup a"}
    return of_pairs("eqben all_select.json", {"all_select.json": [row, row]})


def seetrue() -> Release:
    sources = ("drawbench",) * 2 + ("coco_t2i",) * 2
    rows = [[f"{n}.png", "a cup", n % 2, f"text_{n}", source] for n, source in enumerate(sources)]
    return Release(
        "seetrue SeeTRUE.csv",
        {"SeeTRUE.csv": named("image,text,label,original_dataset_id,dataset_source", rows)},
        [{"image": image, "text": text, "m": label / 2} for image, text, label, *_ in rows],
        {"n": 3, "dropped": 1},
        "image, text",
    )


def rated(call: str, data: str, likert: Mapping[str, Any], **ratings: Sequence[Any]) -> Release:
    """Three pictures of TIFA with *ratings*, or those of DSG, whose releases differ in two columns."""
    pictures = {
        f"c{n}_mini_dalle": {"text_id": f"c{n}", "image_path": f"c{n}_mini_dalle.jpg", "text": "a cup"}
        | {name: each[n] for name, each in ratings.items()}
        for n in range(3)
    }
    question = "How consistent is it?"
    rows = [["tifa160", "mini-dalle", f"tifa160_{n}", f"c{n}", 437, question, n + 1] for n in range(3)]
    of_dsg = {
        file: named(f"{columns},item_id,source_id,worker_id,question,answer", rows)
        for file, columns in likert.items()
    }
    return Release(
        f"tifa160 {data} {call}",
        {data: pictures, **of_dsg},
        [{"image_path": f"c{n}_mini_dalle.jpg", "m": n / 3} for n in range(3)],
        {"n": 2, "dropped": 1},
        "image_path",
    )


def gecko2k() -> Release:
    shares = [f"max_disagreement_less_{each}" for each in ("0.3", "0.35", "0.4", "0.45", "0.5")]
    columns = [",dataset_id,prompt,prompt_type,prompt_id", *shares, "v1_max_disagreement_less_0.45"]
    prompts = ([n, "att/count:simple", "a cup", "Gecko(S)", n, *["True"] * 6] for n in range(3))
    return Release(
        "gecko2k prompts.csv --votes votes.csv --reliable 0.5",
        {
            "prompts.csv": named(",".join(columns), prompts),
            "votes.csv": named("prompt_id,a,b,vote", ([n, "x", "y", 1] for n in range(3))),
        },
        [{"prompt_id": n, "model": model, "m": int(model == "x")} for n in range(3) for model in "xy"],
        {"comparisons": 2, "missing": 1},
        unknown="prompts.csv: there is no prompt 90",
    )


TIFA = "human_annotations_with_scores.json"
RATINGS = {"human_scores": [[n, 5] for n in range(3)], "human_avg": range(3)}
DSG = {"tifa160-likert-anns.csv": "dsg_prompt_split,t2i_model"}
T2V = {"dsg_tifa160_anns.csv": "data_type,model_type"}
RELEASES = {make.__name__: make() for make in (ts2, geneval, genai, winoground, eqben, seetrue, gecko2k)} | {
    "tifa160": rated("", TIFA, {}, **RATINGS),
    "tifa160, DSG's ratings": rated("--likert tifa160-likert-anns.csv", TIFA, DSG, **RATINGS),
    "tifa160, t2v_metrics' files": rated("--likert dsg_tifa160_anns.csv", "tifa160.json", T2V),
}
