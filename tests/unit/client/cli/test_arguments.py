"""Arguments that are given twice, several prompts, one prompt for a folder, rotation, and Ctrl-C."""

import json

import httpx2 as httpx
import pytest

from scoregate.runs.results import Results
from tests.support.pictures import png
from tests.unit.client.cli.served import ROWS, Service, lines, metric

METRICS = {name: metric() for name in ("vqascore", "clipscore")}
PROMPTS = ("-p", "a dog", "-p", "a cat")


@pytest.fixture
def service():
    """A service of two metrics."""
    return Service("clip@1", metrics=METRICS)


@pytest.fixture
def folder(tmp_path):
    """A folder of two pictures, without captions."""
    (tmp_path / "folder").mkdir()
    for name in ("a.png", "b.png"):
        (tmp_path / "folder" / name).write_bytes(png())
    return tmp_path / "folder"


@pytest.mark.parametrize(
    ("arguments", "named"),
    [
        (("rank", "p.png", "-p", "x", "-m", "vqascore", "-m", "clipscore"), "-m/--metric"),
        (("rank", "p.png", *PROMPTS), "-p/--prompt"),
        (("batch", "rows.jsonl", "-o", "a.jsonl", "-o", "b.jsonl"), "-o/--out"),
        (("calibrate", "a.jsonl", "--metric", "a", "--metric", "b"), "-m/--metric"),
        (("evaluate", "means", "--scores", "a.csv", "--scores", "b.csv"), "--scores"),
        (("bench", "tifa160", "a.json", "--likert", "a.csv", "--likert", "b.csv"), "--likert"),
    ],
)
def test_an_argument_of_one_value_that_is_given_twice_is_refused(command, service, arguments, named):
    """By any command, and none takes the last value silently."""
    status, out, err = command(service, *arguments)

    assert (2, "", []) == (status, out, service.sent)
    assert err.splitlines()[-1].endswith(f"argument {named}: is given twice, and takes one value")


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (("rank", "--cascade", "clipscore:few"), "it has the form METRIC:KEEP, such as clipscore:8"),
        (("rank", "--cascade", "clipscore:-1"), "at least 1"),
        (("compare", "--schedule", "swiss:few"), "it has the form KIND:N, such as swiss:4 or anchor:2"),
        (("compare", "--schedule", "swiss:-1"), "at least 1"),
    ],
)
def test_a_number_within_an_argument_is_refused_with_its_form(command, service, arguments, said):
    """The line has no name of a function that reads the argument."""
    name, option, value = arguments
    status, out, err = command(service, name, "p.png", "-p", "x", option, value)

    assert (2, "", []) == (status, out, service.sent)
    assert err.splitlines()[-1].endswith(f"argument {option}: {said}")


@pytest.mark.parametrize("name", ["score", "rank"])
def test_options_have_no_letter_that_is_another_commands_output(command, service, name):
    """`-o` is where `batch` and `report` write."""
    status, _, err = command(service, name, "p.png", "-p", "x", "-o", "vqascore.output=logit")

    assert 2 == status
    assert "unrecognized arguments: -o" in err
    assert 0 == command(service, name, "p.png", "-p", "x", "--option", "vqascore.output=logit")[0]
    assert {"vqascore": {"output": "logit"}} == service.sent[0]["options"]


def test_an_option_of_an_output_is_not_one_of_its_metric(command, service):
    """The longest name of a metric counts: an option has no dot."""
    options = ("--option", "judge.sc1.rubric=mine", "--option", "judge.labels=A-E")

    assert 0 == command(service, "score", "p.png", "-p", "x", *options)[0]
    assert {"judge.sc1": {"rubric": "mine"}, "judge": {"labels": "A-E"}} == service.sent[0]["options"]


def test_an_option_may_be_the_table_in_a_file(command, service, tmp_path):
    """Such as a rubric; a text that only begins with @ stays one."""
    (tmp_path / "mine.toml").write_text('score = "a"\n[[calls]]\ninstructions = "x"\n', "utf-8")
    options = ("--option", f"judge.rubric=@{tmp_path}/mine.toml", "--option", "ocr.text=@x")

    assert 0 == command(service, "score", "p.png", "-p", "x", *options)[0]
    rubric = {"score": "a", "calls": [{"instructions": "x"}]}
    assert {"judge": {"rubric": rubric}, "ocr": {"text": "@x"}} == service.sent[0]["options"]


@pytest.mark.parametrize(
    ("text", "said"),
    [("x", "not TOML"), ("x = 2026-11-27", "a value is none of JSON"), (None, "No such file")],
)
@pytest.mark.parametrize(
    "arguments",
    [
        ("score", "p.png", "-p", "x", "--option", "judge.rubric=@mine.toml"),
        ("compare", "p.png", "p.png", "-p", "x", "--rubric", "@mine.toml"),
    ],
)
def test_a_file_that_is_no_table_of_json_is_refused(command, service, tmp_path, text, said, arguments):
    """Before anything is sent, with the name of the file."""
    if text:
        (tmp_path / "mine.toml").write_text(text, "utf-8")
    status, _, err = command(service, *arguments)

    assert (2, []) == (status, service.sent)
    assert said in err
    assert "mine.toml" in err


def test_the_next_call_in_the_same_process_may_have_the_argument(command, service):
    """A parser counts within one call."""
    for _ in range(2):
        assert 0 == command(service, "rank", "p.png", "-p", "x", "-m", "vqascore")[0]


def words(text):
    """The cells of a table, which have no white space."""
    return [line.split() for line in text.splitlines()]


def test_several_prompts_print_a_matrix_of_pictures_and_prompts(command, service, folder):
    """A row for each picture and a column for each prompt, once; all pairs are one request."""
    scores = iter([0.1, 0.2, 0.3, 0.4])

    def answered(request):
        answer = service(request)
        content = json.loads(answer.content)
        for result in content.get("results", ()):
            result["scores"] = {"vqascore": next(scores)}
        return httpx.Response(answer.status_code, json=content)

    again = ("-p", "cat")
    status, out, _ = command(answered, "score", "folder", "-p", "dog", "-p", "cat", *again)
    [sent] = service.sent

    assert 0 == status
    assert [
        ["PICTURE", "dog", "cat"],
        ["folder/a.png", "0.1000", "0.2000"],
        ["folder/b.png", "0.3000", "0.4000"],
    ] == words(out)
    assert ["dog", "cat", "dog", "cat"] == [item["prompt"] for item in sent["items"]]


def test_a_matrix_of_several_metrics_is_a_table_for_each(command, service):
    """Below its name."""
    _, out, _ = command(service, "score", "p.png", *PROMPTS, "-m", "vqascore", "-m", "clipscore")
    tables = out.split("\n\n")

    assert ["vqascore", "clipscore"] == [table.splitlines()[0] for table in tables]
    assert all(["PICTURE", "a", "dog", "a", "cat"] == words(table)[1] for table in tables)


def test_a_prompt_is_that_of_all_pictures_of_a_folder(command, service, folder, tmp_path):
    """Without captions; the manifest has it, so that the run can be reproduced."""
    (folder / "a.txt").write_text("another prompt", "utf-8")
    status, _, _ = command(service, "batch", "folder", "--prompt", "a dog", "-o", "out.jsonl")
    again, out, _ = command(service, "reproduce", "out.jsonl.manifest.json", "--json")

    assert (0, 0) == (status, again)
    assert ["a dog"] * 2 == [line["prompt"] for line in lines(tmp_path / "out.jsonl")]
    assert 2 == json.loads(out)["metrics"]["vqascore"]["compared"]


@pytest.mark.parametrize(
    ("dataset", "prompt", "said"),
    [
        (
            "rows.jsonl",
            "a dog",
            "--prompt is for a folder of pictures alone: rows.jsonl has prompts of its own",
        ),
        ("folder", " ", "--prompt is empty"),
        ("none", "a dog", "none: no such file or folder"),
    ],
)
def test_a_prompt_for_other_data_sets_is_refused(command, service, folder, dataset, prompt, said):
    """Theirs would be ignored."""
    status, _, err = command(service, "batch", dataset, "--prompt", prompt, "-o", "out.jsonl")

    assert (2, f"scoregate: {said}\n", []) == (status, err, service.sent)


@pytest.mark.parametrize("name", ["score", "rank", "batch"])
def test_the_rotation_of_pictures_is_sent(command, service, folder, name):
    """With each item, or with the ranking."""
    dataset = ("folder", "-p", "a dog", *(["-o", "out.jsonl"] if name == "batch" else []))
    status, _, _ = command(service, name, *dataset, "--orient", "exif")
    [sent] = service.sent

    assert 0 == status
    assert {"exif"} == {each["orient"] for each in sent.get("items", [sent])}


@pytest.mark.parametrize("out", ["out.jsonl", "out.parquet", "out.csv"])
def test_scores_of_pictures_with_another_rotation_are_not_mixed(command, service, folder, out):
    """The file says it, and its manifest; the same rotation goes on."""
    batch = ("batch", "folder", "-p", "a dog", "-o", out)
    command(service, *batch, "--orient", "exif")
    status, _, err = command(service, *batch)

    assert 2 == status
    assert 'was scored with the orient "exif", now they are null' in err
    assert 0 == command(service, *batch, "--orient", "exif")[0]
    assert 1 == len(service.sent)
    assert 0 == command(service, "reproduce", f"{out}.manifest.json")[0]
    assert {"exif"} == {item["orient"] for item in service.sent[-1]["items"]}


@pytest.mark.parametrize("name", ["score", "rank"])
def test_an_empty_file_of_a_folder_does_not_stop_the_others(command, service, folder, name):
    """They are scored, the file is named, and the status says that a score is missing."""
    (folder / "empty.png").touch()
    (folder / "gone.png").symlink_to("nowhere.png")
    (folder / "nested.png").mkdir()
    status, out, err = command(
        service, name, "folder", "-p", "a dog", *["--on-error", "block"] * (name == "rank")
    )

    assert 1 == status
    assert all(f"folder/{each}.png" in out for each in "ab")
    assert [
        "folder/empty.png: the file is empty",
        "folder/gone.png: No such file or directory",
        "folder/nested.png: Is a directory",
    ] == [line for line in err.splitlines() if line.startswith("folder/")]


def test_a_ranking_that_a_broken_file_ends_says_how_to_rank_the_others(command, service, folder):
    """As its argument --on-error has it by default."""
    (folder / "empty.png").touch()
    status, _, err = command(service, "rank", "folder", "-p", "a dog")

    assert (1, []) == (status, service.sent)
    assert "folder/empty.png: the file is empty; --on-error pass or block ranks the others\n" in err


def test_a_file_that_the_service_does_not_take_is_a_row_that_cannot_be_read(
    command, service, folder, tmp_path
):
    """A request with it would be rejected as a whole, and end the run."""
    (folder / "large.png").write_bytes(png() + bytes(10_000))
    service.facts["limits"] = {"max_image_bytes": 9_000}
    status, _, err = command(service, "batch", "folder", "-p", "a dog", "-o", "out.jsonl")
    size = len(png()) + 10_000

    assert 1 == status
    assert f"row 3, large.png: a file has {size} bytes, and the service takes 9000\n" in err
    assert [False, False, True] == [bool(line["errors"]) for line in lines(tmp_path / "out.jsonl")]


@pytest.mark.parametrize("out", ["out.jsonl", "out.parquet", "out.csv"])
def test_ctrl_c_says_how_many_rows_are_kept(command, service, monkeypatch, out):
    """The same command goes on from there, in a file of either kind."""
    with monkeypatch.context() as patch:
        steps = iter(range(20))
        add = Results.add

        def interrupted(*arguments):
            if next(steps, None) is None:
                raise KeyboardInterrupt
            add(*arguments)

        patch.setattr(Results, "add", interrupted)
        status, _, err = command(service, "batch", "rows.jsonl", "-o", out)
    service.sent.clear()

    assert (
        130,
        f"scoregate: interrupted: 20 rows are kept in {out}, and the same command goes on from there\n",
    ) == (
        status,
        err,
    )
    assert 0 == command(service, "batch", "rows.jsonl", "-o", out)[0]
    assert ROWS - 20 == sum(len(sent["items"]) for sent in service.sent)


def test_prompts_of_a_folder_come_from_a_file(command, service, folder, tmp_path):
    """A picture that the file does not name is an error, and `reproduce` finds the file from elsewhere."""
    (tmp_path / "prompts.json").write_text('{"b.png": "a dog"}', "utf-8")
    (tmp_path / "out").mkdir()
    status, _, err = command(
        service, "batch", "folder", "--prompts", "prompts.json", "-o", "out/a.jsonl", "-m", "vqascore"
    )

    assert 1 == status
    assert "cannot read row 1, a.png: prompts.json has no prompt of it\n" in err
    assert [None, "a dog"] == [line["prompt"] for line in lines(tmp_path / "out" / "a.jsonl")]
    manifest = json.loads((tmp_path / "out" / "a.jsonl.manifest.json").read_text("utf-8"))
    assert "../prompts.json" == manifest["dataset"]["prompts"]
    assert 0 == command(service, "reproduce", "out/a.jsonl.manifest.json")[0]


@pytest.mark.parametrize(
    ("arguments", "why"),
    [
        (("folder", "-p", "x"), "--prompt and --prompts: give one of them"),
        (("rows.jsonl",), "--prompts is for a folder of pictures alone: rows.jsonl has prompts of its own"),
        (("folder", "--matrix"), "--matrix: this folder has no table"),
        (("folder", "--frames-column", "x"), "--frames-column: this folder has no table"),
        (("folder", "--prompt-column", "text"), "prompts.csv, row 1: no column 'text'"),
        (("folder", "--html", "prompts.csv"), "prompts.csv: the page would overwrite the data set"),
    ],
)
def test_prompts_that_cannot_be_used_are_refused(command, service, folder, tmp_path, arguments, why):
    """Before anything is scored."""
    (tmp_path / "prompts.csv").write_text("image,prompt\na,x\n", "utf-8")
    status, _, err = command(service, "batch", *arguments, "--prompts", "prompts.csv", "-o", "out.jsonl")

    assert (2, []) == (status, service.sent)
    assert why in err
