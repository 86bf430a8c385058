"""`scoregate batch`: options, lists of frames, matrices and sweeps, from the columns of a data set."""

import json

import pytest

from scoregate.runs.results import lines_of
from tests.support.pictures import png
from tests.unit.client.cli.served import Service, lines, metric

DSG = metric() | {"style": "dsg"}
METADATA = {"tag": "single_object", "include": [{"class": "bench", "count": 1}]}
ROW = {"image": "p.png", "prompt": "a sign"}


@pytest.fixture
def service():
    """A service with a metric that has question sets, and others without."""
    plain = ("vqascore", "ocr", "geneval", "judge", "judge.sc1")
    return Service("clip@1", metrics={"dsg": DSG} | {name: metric() for name in plain})


@pytest.fixture
def batch(command, service, written, tmp_path):
    """The status, stderr, and the lines of OUT."""

    def batch(rows, *arguments, name="table.jsonl"):
        status, out, err = command(service, "batch", written(rows, name), "-o", "out.jsonl", *arguments)
        assert not out
        return status, err, lines(tmp_path / "out.jsonl") if status != 2 else []

    return batch


def items(service):
    return [item for sent in service.sent for item in sent["items"]]


@pytest.mark.parametrize(
    ("metric", "columns", "options"),
    [
        ("ocr", {"ocr.text": "open"}, {"ocr": {"text": "open"}}),
        ("ocr", {"ocr": {"text": "open"}}, {"ocr": {"text": "open"}}),
        ("ocr", {"options": {"ocr": {"text": "open"}}}, {"ocr": {"text": "open"}}),
        ("ocr", {"options": {"ocr": {"text": "shut"}}, "ocr.text": "open"}, {"ocr": {"text": "open"}}),
        ("geneval", {"geneval": METADATA}, {"geneval": METADATA}),
        ("dsg", {"question_set": "sha256:1"}, {"dsg": {"question_set": "sha256:1"}}),
        ("ocr", {"question_set": "sha256:1", "dsg.x": 1, "options": {"dsg": {"x": 1}}, "ocr": 0.5}, None),
    ],
    ids=["one", "of a metric", "all", "the narrower", "metadata", "question set", "of other metrics"],
)
@pytest.mark.parametrize("name", ["table.jsonl", "table.csv"])
def test_columns_have_the_options_of_a_row(batch, service, metric, columns, options, name):
    """In CSV a cell is JSON; columns of metrics that are not scored, and scores, are none."""
    cells = {key: json.dumps(cell) if isinstance(cell, dict) else cell for key, cell in columns.items()}
    status, _, [line] = batch([ROW | (cells if name.endswith("csv") else columns)], "-m", metric, name=name)
    [item] = items(service)

    assert 0 == status
    assert options == item.get("options") == line.get("own_options")


def test_pictures_of_geneval_become_its_table(command, service, tmp_path):
    """From a data set's column, and from GenEval's folder, where the results are found by themselves."""
    folder = tmp_path / "a"
    (folder / "00000" / "samples").mkdir(parents=True)
    (folder / "00000" / "samples" / "0000.png").write_bytes(png())
    (folder / "00000" / "metadata.jsonl").write_text(json.dumps(METADATA | {"prompt": "a bench"}), "utf-8")
    (tmp_path / "b.jsonl").write_text(json.dumps(ROW | {"geneval": METADATA}), "utf-8")
    service.score = 1.0
    for dataset, out in (("a", "a/results.jsonl"), ("b.jsonl", "b.out.jsonl")):
        assert 0 == command(service, "batch", dataset, "-o", out, "-m", "geneval", "--explain")[0]
    status, out, _ = command(service, "bench", "geneval", "A=a", "B=b.out.jsonl", "--json")

    assert 0 == status
    assert [1, 1] == [row["mean"]["single_object"] for row in json.loads(out)["generators"]]
    assert [METADATA | {"prompt": "a bench"}, METADATA] == [
        item["options"]["geneval"] for item in items(service)
    ]


@pytest.mark.parametrize("column", ["ocr.text", "wanted"])
def test_an_option_that_is_a_text_stays_one_in_csv(command, service, batch, column, tmp_path):
    """Digits and brackets too, as the service's schema says; quotes as in JSON are none of it."""
    schemas = {
        "Options": {"properties": {"ocr": {"$ref": "#/components/schemas/OcrOptions"}}},
        "OcrOptions": {
            "properties": {
                "text": {"anyOf": [{"type": "string"}, {"type": "null"}]},
                "samples": {"anyOf": [{"type": "integer"}, {"type": "null"}]},
            }
        },
    }
    service.document |= {"components": {"schemas": schemas}}
    texts = ["2024", "true", "[1]", "open", '"7"']
    given = ("-m", "ocr", *(["--option-column", "ocr.text=wanted"] if column == "wanted" else []))
    batch([ROW | {column: text, "ocr.samples": "2"} for text in texts], *given, name="table.csv")
    sent = [item["options"]["ocr"] for item in items(service)]

    assert [{"text": text.strip('"'), "samples": 2} for text in texts] == sent
    assert 0 == command(service, "reproduce", "out.jsonl.manifest.json")[0]
    assert sent * 2 == [item["options"]["ocr"] for item in items(service)]
    offline = ("report", "table.csv", "-o", "page.html", "--results", "out.jsonl", "--offline")
    assert 0 == command(service, *offline, *given)[0]


def test_a_column_of_another_name_has_an_option(batch, service):
    """`--option-column`; an empty cell leaves the option out."""
    rows = [ROW | {"wanted": "open"}, ROW | {"wanted": ""}]
    batch(rows, "-m", "ocr", "--option-column", "ocr.text=wanted")

    assert [{"ocr": {"text": "open"}}, None] == [item.get("options") for item in items(service)]


def test_the_same_picture_and_prompt_with_other_options_is_another_row(batch, service):
    """The next run requests what changed."""
    rows = [ROW | {"ocr.text": text} for text in ("open", "shut")]
    batch(rows, "-m", "ocr")
    _, said, found = batch([*rows[:1], ROW | {"ocr.text": "ajar"}], "-m", "ocr")

    assert ["open", "shut", "ajar"] == [item["options"]["ocr"]["text"] for item in items(service)]
    assert ["open", "ajar", "shut"] == [line["own_options"]["ocr"]["text"] for line in found]
    assert "2 of 2 rows have all scores; 1 were requested" in said


def test_a_list_of_frames_is_one_item(batch, service, tmp_path):
    """The frames are named in OUT, and one that changed is another picture."""
    (tmp_path / "q.png").write_bytes(png("green"))
    row = {"views": ["p.png", "q.png"], "prompt": "a chair"}
    _, _, [first] = batch([row], "--frames-column", "views")
    (tmp_path / "q.png").write_bytes(png("blue"))
    _, _, [second] = batch([row], "--frames-column", "views")

    assert [2, 2] == [len(item["image"]) for item in items(service)]
    assert "p.png, q.png" == first["image"]
    assert first["sha256"] != second["sha256"]


@pytest.mark.parametrize(
    ("row", "columns"),
    [
        ({"image": ["p.png", "q.png"], "prompt": ["a sun", "a moon"]}, ()),
        (
            {"one": "p.png", "two": "q.png", "first": "a sun", "second": "a moon"},
            ("--image-column", "one,two", "--prompt-column", "first,second"),
        ),
    ],
    ids=["lists", "columns"],
)
def test_a_matrix_scores_each_picture_with_each_text(batch, tmp_path, row, columns):
    """Each line has its place in the matrix, and the row's other columns."""
    (tmp_path / "q.png").write_bytes(png("green"))
    status, _, found = batch([row | {"tag": "sky"}], "--matrix", *columns)

    assert 0 == status
    pairs = [(line["image"], line["prompt"]) for line in found]
    assert [(p, t) for p in ("p.png", "q.png") for t in ("a sun", "a moon")] == pairs
    assert [(0, 0), (0, 1), (1, 0), (1, 1)] == [
        (line["columns"]["picture"], line["columns"]["caption"]) for line in found
    ]
    assert {("sky", 1)} == {(line["columns"]["tag"], line["columns"]["item"]) for line in found}


STRUCTURED = '{"subject": "a green circle"}'


@pytest.mark.parametrize("prompt", [STRUCTURED, '["a", "list"]', '[{"of": "objects"}]', "[1, 2"])
@pytest.mark.parametrize("name", ["table.jsonl", "table.csv"])
def test_a_text_that_is_json_is_a_prompt_and_a_column(batch, service, prompt, name):
    """As structured prompts are; from CSV as from JSON Lines."""
    status, _, [line] = batch([ROW | {"prompt": prompt, "note": STRUCTURED}], "-m", "vqascore", name=name)

    assert 0 == status
    assert [prompt] == [item["prompt"] for item in items(service)]
    assert (prompt, STRUCTURED) == (line["prompt"], line["columns"]["note"])


def test_a_matrix_of_csv_takes_a_list_or_one_text_that_is_json(batch, service):
    """Each cell of prompts is a list in JSON, or a prompt."""
    rows = [ROW | {"prompt": '["a sun", "a moon"]'}, ROW | {"prompt": STRUCTURED}]
    status, _, _ = batch(rows, "-m", "vqascore", "--matrix", name="table.csv")

    assert (0, ["a sun", "a moon", STRUCTURED]) == (status, [item["prompt"] for item in items(service)])


@pytest.mark.parametrize("name", ["picture", "caption"])
def test_a_matrix_replaces_no_column_of_the_data_set(batch, name):
    """It is rejected with the name, before a request."""
    status, said, found = batch([{"image": "p.png", "prompt": ["a sun"], name: "mine"}], "--matrix")

    assert (2, []) == (status, found)
    assert f"--matrix adds a column {name}: rename the one of the data set" in said


def test_a_sweep_scores_each_row_with_each_value(batch, service, tmp_path):
    """A column has the value's line; a value that is new in the file is requested alone."""
    values = tmp_path / "values.txt"
    values.write_text("Yes\n2\n", "utf-8")
    rows = [ROW, ROW | {"prompt": "a door"}]
    sweep = ("--sweep", "vqascore.answer=values.txt")
    _, _, found = batch(rows, *sweep)
    values.write_text("Yes\n2\nNo\n", "utf-8")
    _, said, again = batch(rows, *sweep)

    assert [1, 2, 3, 4] == [line["row"] for line in found]
    assert ["Yes", "2", "Yes", "2"] == [line["columns"]["vqascore.answer"] for line in found]
    assert ["Yes", 2] * 2 + ["No"] * 2 == [item["options"]["vqascore"]["answer"] for item in items(service)]
    assert "6 of 6 rows have all scores; 2 were requested" in said
    assert 6 == len(again)


@pytest.mark.parametrize(
    ("columns", "said"),
    [
        ({"options": "none"}, "column options is no object of options by metric"),
        ({"options": {"ocr": 1}}, "column options, ocr is no object of options"),
        ({"ocr": "{open"}, "column ocr is no object of options"),
        ({"ocr.text": float("nan")}, "its options are no JSON"),
    ],
)
def test_a_row_whose_options_cannot_be_read_is_an_error(batch, service, columns, said):
    """It names the column; the row beside it is scored."""
    status, _, found = batch([ROW, ROW | columns], "-m", "ocr")

    assert (1, 1) == (status, len(items(service)))
    assert [{}, "unreadable_row"] == [found[0]["errors"], found[1]["errors"]["ocr"]["code"]]
    assert said in found[1]["errors"]["ocr"]["detail"]


def test_a_row_of_a_matrix_without_a_text_is_an_error(batch):
    """It names the column."""
    status, _, [line] = batch([ROW | {"prompt": []}], "--matrix")

    assert (1, "row 1: column prompt is missing") == (status, line["errors"]["vqascore"]["detail"])


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (("--matrix", "--frames-column", "image"), "--matrix and --frames-column: give one of them"),
        (("--frames-column", "views"), "no column 'views'"),
        (("--option-column", "ocr.text=wanted"), "no column 'wanted'"),
        (("--option-column", "ocr.text"), "it has the form METRIC.OPTION=COLUMN"),
        (("--option-column", "clip.text=prompt"), "clip.text: this metric is not scored"),
        (("--sweep", "ocr.text"), "it has the form METRIC.OPTION=FILE"),
        (("--sweep", "ocr.text=nowhere"), "nowhere: No such file"),
        (("--sweep", "ocr.text=empty"), "empty: there is no value"),
        (("--sweep", "ocr.text=twice"), "twice: a value stands there twice"),
        (("--sweep", "clip.text=twice"), "twice: a value stands there twice"),
    ],
)
def test_a_wrong_argument_is_one_line(batch, service, tmp_path, arguments, said):
    """Status 2, and nothing is requested."""
    (tmp_path / "empty").write_text("\n", "utf-8")
    (tmp_path / "twice").write_text("a\na\n", "utf-8")
    status, err, _ = batch([ROW], "-m", "ocr", *arguments)

    assert (2, []) == (status, service.sent)
    [line] = err.splitlines()
    assert said in line


@pytest.mark.parametrize(
    "arguments",
    [
        ("--matrix",),
        ("--frames-column", "frames"),
        ("--image-column", "file"),
        ("--prompt-column", "text"),
        ("--option-column", "vqascore.answer=answer"),
    ],
    ids=lambda arguments: arguments[0],
)
def test_pictures_with_caption_files_have_no_columns(command, service, pictures, arguments):
    """An argument about columns would have no effect: it is refused before anything is scored."""
    status, _, err = command(service, "batch", str(pictures), "-o", "out.jsonl", *arguments)

    assert (2, []) == (status, service.sent)
    assert f"{arguments[0]}: this folder has no table" in err


def test_an_output_of_a_rubric_is_a_metric_with_options_of_its_own(batch, service):
    """The part behind the last full stop is the option; a column with a metric's name and a score is none."""
    row = ROW | {"judge.sc1.rubric": "poster", "judge.rubric": "editing", "judge.sc1": 3, "wanted": "x"}
    given = "-m", "judge", "-m", "judge.sc1", "--option-column", "judge.sc1.data=wanted"
    status, _, _ = batch([row], *given)

    [item] = items(service)
    assert 0 == status
    options = {"judge.sc1": {"rubric": "poster", "data": "x"}, "judge": {"rubric": "editing"}}
    assert options == item["options"]


MIXED = [
    ROW | {"image": "a.png", "kind": ["ocr"]},
    ROW | {"image": "b.png", "kind": "geneval, vqascore"},
    ROW | {"image": "c.png", "kind": ""},
]
COLUMN = "-m", "ocr", "-m", "geneval", "-m", "vqascore", "--metrics-column", "kind"
WANTED = [["ocr"], ["geneval", "vqascore"], ["geneval", "ocr", "vqascore"]]


@pytest.fixture
def mixed(tmp_path):
    for name in ("a", "b", "c"):
        (tmp_path / f"{name}.png").write_bytes(png())


@pytest.mark.usefixtures("mixed")
def test_a_column_has_the_metrics_of_each_row(batch, service):
    """A list, or names with commas; a row without any has all that are given."""
    status, _, found = batch(MIXED, *COLUMN)

    assert 0 == status
    assert [["ocr"], ["geneval", "vqascore"], None] == [item.get("metrics") for item in items(service)]
    assert WANTED == [sorted(line["scores"]) for line in found]
    assert [["ocr"], ["geneval", "vqascore"], None] == [line.get("own_metrics") for line in found]


@pytest.mark.usefixtures("mixed")
def test_the_next_run_scores_rows_whose_metrics_changed(batch, service):
    """And no others, though the answers had the models of some metrics alone."""
    batch(MIXED, *COLUMN)
    service.sent.clear()
    assert not batch(MIXED, *COLUMN)[0]
    assert not service.sent

    _, _, found = batch([MIXED[0] | {"kind": "ocr, vqascore"}, *MIXED[1:]], *COLUMN)
    assert [["ocr", "vqascore"]] == [item["metrics"] for item in items(service)]
    assert [["ocr", "vqascore"], *WANTED[1:]] == [sorted(line["scores"]) for line in found]


@pytest.mark.usefixtures("mixed")
def test_a_metric_that_is_not_given_is_the_error_of_its_row(batch, service):
    """With its name; the others are scored."""
    status, err, found = batch([MIXED[0] | {"kind": "orc"}, *MIXED[1:]], *COLUMN)

    assert 1 == status
    assert "row 1, column kind has 'orc', which is not scored" in err
    assert [False, True, True] == [bool(line["scores"]) for line in found]


@pytest.mark.usefixtures("mixed")
@pytest.mark.parametrize("out", ["out.csv", "out.parquet", "out.jsonl"])
def test_rows_with_metrics_of_their_own_are_in_every_form_of_results(
    command, service, written, tmp_path, out
):
    """A filter keeps no row that lacks its metric, and a page of the results has them all."""
    data = written(MIXED)
    given = "-o", out, *COLUMN, "--filter", "ocr >= 0.1"
    assert 0 == command(service, "batch", data, *given)[0]

    assert WANTED == [sorted(line["scores"]) for line in lines_of(tmp_path / out)]
    assert ["a.png", "c.png"] == (tmp_path / f"{out}.kept.txt").read_text("utf-8").split()
    page = "report", data, "--results", out, "--offline", *COLUMN, "-o", "page.html"
    status, _, err = command(service, *page)
    assert 0 == status, err
