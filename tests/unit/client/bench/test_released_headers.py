"""`scoregate bench NAME`, over files with all columns of the authors' releases, in their order."""

import csv
import io
import json
import re

import pytest

import scoregate.bench
from scoregate.bench import BENCHMARKS, METRICS
from scoregate.cli.main import main

CLASSES = ("single_object", "two_object", "counting", "colors", "position", "color_attr")
GECKO = (
    ",dataset_id,prompt,prompt_type,prompt_id,max_disagreement_less_0.3,max_disagreement_less_0.35,"
    "max_disagreement_less_0.4,max_disagreement_less_0.45,max_disagreement_less_0.5,"
    "v1_max_disagreement_less_0.45"
)


def table(header, *rows):
    """The text of a CSV file."""
    text = io.StringIO()
    csv.writer(text).writerows([header.split(","), *rows])
    return text.getvalue()


def json_lines(*rows):
    return "".join(json.dumps(row) + "\n" for row in rows)


def rated(key, *more):
    return {key: {"text_id": key[:2], "image_path": f"{key}.jpg", "text": "a cup", **dict(more)}}


TS2 = [[0, "a cup", f"images/000-0{n}.jpg", "SD2.1", rank] for n, rank in enumerate(("0", "1a", "1a", "2"))]
SEETRUE = [
    [f"{n}.png", "a cup", n % 2, f"text_{n}", source]
    for n, source in enumerate(("drawbench",) * 2 + ("coco_t2i",) * 2)
]
GENAI = {
    f"{n:05d}": {
        "id": f"{n:05d}",
        "prompt": "a cup",
        "models": {"DALLE_3": [n + 1, 5, 4], "SDXL_Base": [1, n + 1, 2]},
    }
    for n in range(3)
}
WINOGROUND = [
    {
        "id": n,
        "image_0": f"ex_{n}_img_0",
        "image_1": f"ex_{n}_img_1",
        "caption_0": "a cup",
        "caption_1": "cup a",
        "tag": "Noun",
        "secondary_tag": "",
        "num_main_preds": 1,
        "collapsed_tag": "Object",
    }
    for n in range(2)
]
EQBEN = [
    {"image0": "eqbenag/0.jpg", "image1": "eqbenag/1.jpg", "caption0": "a cup", "caption1": "cup a"}
    for _ in range(2)
]
CHOICES = table(
    "label,m", *([f"{n}_c{c}_i{i}", 1.0 - abs(c - i)] for n in (0, 1) for c in (0, 1) for i in (0, 1))
)
VERDICTS = json_lines(
    *(
        {
            "filename": f"{n:05d}/samples/0000.png",
            "tag": tag,
            "prompt": f"a photo of a {tag}",
            "correct": n % 2 == 0,
            "reason": "" if n % 2 == 0 else "expected cup>=1, found 0",
            "metadata": json.dumps({"tag": tag, "include": [{"class": "cup", "count": 1}], "prompt": tag}),
            "details": json.dumps({"cup": [[0.0, 0.0, 9.0, 9.0, 0.9]]}),
        }
        for n, tag in enumerate(CLASSES)
    )
)
TIFA = {
    k: v
    for n in range(3)
    for k, v in rated(f"c{n}_mini_dalle", ("human_scores", [n, 5]), ("human_avg", n)).items()
}
TIFA160 = {key: value for n in range(3) for key, value in rated(f"c{n}_mini_dalle").items()}
LIKERT = [
    ["tifa160", "mini-dalle", f"tifa160_{n}", f"c{n}", 437, "How consistent is it?", n + 1] for n in range(3)
]
OF_LIKERT = "item_id,source_id,worker_id,question,answer"
OF_PICTURES = table("image_path,m", *([f"c{n}_mini_dalle.jpg", n / 3] for n in range(3)))

# By benchmark: its files, the scores of a metric m, and the arguments; a name is that of a file.
RELEASES = {
    "ts2": (
        {
            "metadata.csv": table("id,target_prompt,file_name,image_source,rank", *TS2),
            "m.csv": table("file_name,m", *([row[2], 1 - n / 4] for n, row in enumerate(TS2))),
        },
        ("metadata.csv", "--scores", "m.csv"),
    ),
    "geneval": ({"results.jsonl": VERDICTS}, ("A=results.jsonl",)),
    "genai": (
        {
            "genai_image.json": json.dumps(GENAI),
            "genai_skills.json": json.dumps({"attribute": [0, 1], "counting": [2]}),
            "m.csv": table(
                "id,model,m", *([k, m, n] for n, k in enumerate(GENAI) for m in GENAI[k]["models"])
            ),
        },
        ("genai_image.json", "--skills", "genai_skills.json", "--scores", "m.csv"),
    ),
    "winoground": (
        {
            "examples.jsonl": json_lines(*WINOGROUND),
            "new_tag_assignments.json": json.dumps({"0": ["NonCompositional"], "1": []}),
            "m.csv": CHOICES,
        },
        ("examples.jsonl", "--tags", "new_tag_assignments.json", "--scores", "m.csv"),
    ),
    "eqben": (
        {"all_select.json": json.dumps(EQBEN), "m.csv": CHOICES},
        ("all_select.json", "--scores", "m.csv"),
    ),
    "seetrue": (
        {
            "SeeTRUE.csv": table("image,text,label,original_dataset_id,dataset_source", *SEETRUE),
            "m.csv": table("image,text,m", *([row[0], row[1], row[2] / 2] for row in SEETRUE)),
        },
        ("SeeTRUE.csv", "--scores", "m.csv"),
    ),
    "tifa160": (
        {"human_annotations_with_scores.json": json.dumps(TIFA), "m.csv": OF_PICTURES},
        ("human_annotations_with_scores.json", "--scores", "m.csv"),
    ),
    "tifa160, DSG's ratings": (
        {
            "human_annotations_with_scores.json": json.dumps(TIFA),
            "tifa160-likert-anns.csv": table(f"dsg_prompt_split,t2i_model,{OF_LIKERT}", *LIKERT),
            "m.csv": OF_PICTURES,
        },
        (
            "human_annotations_with_scores.json",
            "--likert",
            "tifa160-likert-anns.csv",
            "--scores",
            "m.csv",
        ),
    ),
    "tifa160, t2v_metrics' files": (
        {
            "tifa160.json": json.dumps(TIFA160),
            "dsg_tifa160_anns.csv": table(f"data_type,model_type,{OF_LIKERT}", *LIKERT),
            "m.csv": OF_PICTURES,
        },
        ("tifa160.json", "--likert", "dsg_tifa160_anns.csv", "--scores", "m.csv"),
    ),
    "gecko2k": (
        {
            "prompts.csv": table(
                GECKO,
                *([n, "att/count:simple", "a cup", "Gecko(S)", n, *["True"] * 6] for n in range(3)),
            ),
            "votes.csv": table("prompt_id,a,b,vote", *([n, "x", "y", 1] for n in range(3))),
            "m.csv": table(
                "prompt_id,model,m", *([n, m, int(m == "x")] for n in range(3) for m in ("x", "y"))
            ),
        },
        ("prompts.csv", "--votes", "votes.csv", "--reliable", "0.5", "--scores", "m.csv"),
    ),
}


@pytest.fixture
def released(tmp_path, monkeypatch):
    """The arguments of a benchmark, in a folder with its files."""

    def released(name):
        files, arguments = RELEASES[name]
        for file, text in files.items():
            (tmp_path / file).write_text(text, "utf-8")
        monkeypatch.chdir(tmp_path)
        return (name.partition(",")[0], *arguments)

    return released


@pytest.mark.parametrize("name", RELEASES)
def test_the_released_files_are_read_as_they_are(bench, released, name):
    """Each has figures of the metric m alone: no column of the release is taken for one."""
    benchmark, *arguments = released(name)
    found = bench(benchmark, *arguments)

    if benchmark == "geneval":
        [row] = found["generators"]
        assert {"single_object": 1, "two_object": 0} == {k: row["mean"][k] for k in CLASSES[:2]}
    elif benchmark == "gecko2k":
        assert [("m", "all", 1), ("m", "Gecko(S)", 1), ("m", "att/count", 1)] == [
            (row["judge"], row["tag"], row["accuracy"]) for row in found["sxs"]
        ]
    else:
        assert {"m"} == {row["metric"] for row in found["metrics"]} - {"chance"}


def test_each_benchmark_of_metrics_has_a_release():
    """The tests below are over all of them."""
    assert {*METRICS} == {name.partition(",")[0] for name in RELEASES}


MARK = ', "lower_is_better": true'
WITH_SCORES = [name for name in RELEASES if name != "geneval"]  # it compares generators by their verdicts


@pytest.mark.parametrize("name", WITH_SCORES)
@pytest.mark.parametrize(
    ("more", "line"),
    [
        (("--metric", "nobody"), ": no column 'nobody'; there are "),
        (("--lower-is-better", "mm"), "--lower-is-better mm: no such metric is printed; there are m"),
        (("--scores", "absent.csv"), "absent.csv: No such file"),
    ],
)
def test_a_metric_that_is_not_there_is_refused(refused, released, name, more, line):
    """A misspelt name would leave a metric out, or its sign as it is."""
    assert line in refused("bench", *released(name), *more)


@pytest.mark.parametrize("name", WITH_SCORES)
def test_a_metric_whose_lower_scores_are_better_is_turned_and_marked(bench, released, name):
    """In a row of a table; the other figures of the metric differ then."""
    tables = (bench(*released(name), *more) for more in ([], ["--lower-is-better", "m"]))
    plain, turned = map(json.dumps, tables)

    assert MARK not in plain
    assert MARK in turned
    assert plain != turned.replace(MARK, "")


@pytest.mark.parametrize("name", RELEASES)
def test_the_function_returns_what_the_command_prints(bench, released, name):
    """Its settings are those of the command, and paths may be texts."""
    benchmark, *arguments = released(name)
    given = {"data": arguments.pop(0)} if BENCHMARKS[benchmark].benchmark.data else {}
    if benchmark == "geneval":
        given["answers"] = dict([arguments.pop(0).split("=")])
    given |= {key.removeprefix("--"): value for key, value in zip(*[iter(arguments)] * 2, strict=True)}

    assert bench(*released(name)) == json.loads(json.dumps(scoregate.bench.run(benchmark, **given)))


@pytest.mark.parametrize("name", RELEASES)
@pytest.mark.parametrize("form", ["text", "markdown", "latex", "csv"])
def test_the_first_table_is_printed_in_each_form(capsys, released, name, form):
    """With the metric, or the generator."""
    more = [] if form == "text" else ["--format", form]
    assert 0 == main(["bench", *released(name), *more])
    printed = capsys.readouterr().out

    separator = {"text": "  ", "markdown": " | ", "latex": " & ", "csv": ","}[form]
    first = "A" if name == "geneval" else "m"
    rows = re.findall(rf"^(?:\| )?{first} *{re.escape(separator)}.*", printed, re.MULTILINE)
    assert rows
    assert all(len(row.split(separator)) > 2 for row in rows)


def test_ratings_that_are_missing_are_asked_for_by_their_argument(refused, tmp_path):
    """t2v_metrics' list of pictures has none."""
    (tmp_path / "tifa160.json").write_text(json.dumps(TIFA160), "utf-8")

    said = refused("bench", "tifa160", tmp_path / "tifa160.json", "--metric", "m")
    assert said.endswith("tifa160.json: no column human_avg; name a file of ratings by --likert")
