"""Results of shards: one file, or a folder with a Parquet file for each."""

import json
import re
from contextlib import redirect_stderr
from dataclasses import replace
from itertools import chain
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from scoregate import Client
from scoregate.runs import batch, manifest
from scoregate.runs.batch_settings import dataset_of
from scoregate.runs.results import Results, lines_of
from scoregate.settings import settings_in
from tests.support.clocks import Clock
from tests.support.pauses import Unpaused
from tests.support.pictures import png
from tests.support.shards import tar_of
from tests.support.terminal import Terminal
from tests.unit.client.cli.served import Numbered, Service, lines, metric

TO_FOLDER = ("batch", "s-{0..2}.tar", "-o", "out", "-m", "vqascore")


@pytest.fixture
def service():
    """A service of two metrics."""
    return Service("clip@1", metrics={"vqascore": metric(), "clipscore": metric()})


def test_one_file_has_the_rows_of_all_shards(command, service, shards):
    """The next run goes on as with any data set, and `reproduce` finds the shards by the manifest."""
    arguments = ("batch", "s-{0..2}.tar", "-o", "out.jsonl", "-m", "vqascore")
    status, _, err = command(service, *arguments)
    rows = lines(Path("out.jsonl"))

    assert (1, [1, 2, 3, 4, 5, 6]) == (status, [row["row"] for row in rows])
    assert "5 of 6 rows have all scores; 5 were requested in this run" in err
    assert "cannot read s-1.tar/0002: it has no picture\n" in err
    assert ("s-0.tar/0001", {"good": 0}) == (rows[0]["image"], rows[0]["columns"])
    assert "0 were requested" in command(service, *arguments)[2]
    assert 0 == command(service, "reproduce", "out.jsonl.manifest.json")[0]


def test_a_report_and_a_sheet_show_the_pictures_in_shards(command, service, shards):
    """As of any data set."""
    for name, arguments in (("report", ()), ("batch", ("-o", "out.jsonl", "--html", "sheet.html"))):
        page = arguments[-1] if arguments else "page.html"
        command(service, name, "s-{0..2}.tar", "-m", "vqascore", *(arguments or ("-o", page)))

        assert "data:image/" in Path(page).read_text("utf-8")


def test_a_folder_has_a_parquet_file_for_each_shard(command, service, shards):
    """And the summary is about all."""
    status, _, err = command(service, *TO_FOLDER)

    assert 1 == status
    assert "5 of 6 rows have all scores; 5 were requested in this run" in err
    assert ["s-0.parquet", "s-1.parquet", "s-2.parquet"] == sorted(
        each.name for each in Path("out").iterdir() if "manifest" not in each.name
    )
    rows = list(lines_of(Path("out/s-1.parquet")))
    assert ["s-1.tar/0001", "s-1.tar/0002"] == [row["image"] for row in rows]
    assert "s-1.tar/0002: it has no picture" == rows[1]["errors"]["vqascore"]["detail"]
    assert 0 == command(service, "reproduce", "out/s-0.parquet.manifest.json")[0]


def test_on_a_terminal_a_shard_has_a_line_above_the_bar(command, service, shards):
    """Which is cleared before, and drawn again."""
    with redirect_stderr(Terminal()) as terminal:
        command(service, *TO_FOLDER)
    drawn = re.split(r"[\r\n]+", terminal.getvalue())

    assert all(f"shard {number} of 3: out/s-{number - 1}.parquet" in drawn for number in (1, 2, 3))
    assert any("it/s]" in line for line in drawn)


def test_small_shards_share_a_request(command, service, shards):
    """The rows of the next shard are sent before the file of the one before it is written."""
    command(service, *TO_FOLDER)

    assert [5] == [len(sent["items"]) for sent in service.sent]


def test_the_seconds_of_a_shard_are_not_those_of_another(service, shards, tmp_path, monkeypatch):
    """A step of the clock for each time that it is read: the spans of the shards do not overlap."""
    monkeypatch.chdir(tmp_path)
    clock = Clock(step=1.0)
    given = {"dataset": Path("s-{0..2}.tar"), "out": Path("out"), "metrics": ["vqascore"]}
    settings = settings_in(batch.Batch, given)
    with Client("http://test", transport=Unpaused(service)) as client:
        session = batch.session_of(client, settings, dataset_of(settings, settings.names))
        batch.score_shards(replace(session, clock=clock), Path("out"))
    runs = [manifest.runs_of(Path(f"out/s-{number}.parquet")) for number in range(3)]

    assert sum(run["seconds"] for [run] in runs) <= clock()


def test_a_finished_shard_is_not_scored_again(command, service, shards):
    """A file that was removed is written again."""
    command(service, *TO_FOLDER)
    before = {file: file.read_bytes() for file in Path("out").iterdir()}
    Path("out/s-2.parquet").unlink()
    status, _, err = command(service, *TO_FOLDER)

    assert 1 == status
    assert "5 of 6 rows have all scores; 2 were requested in this run" in err
    assert before.keys() == set(Path("out").iterdir())
    assert {file for file in before if file.read_bytes() != before[file]} <= {
        Path("out/s-2.parquet.manifest.json")
    }


def test_errors_of_finished_shards_are_scored_again_on_demand(command, service, shards):
    """Only these rows; a shard without errors is not read again, and the others' scores stay."""
    service.entry = {"errors": {"vqascore": {"code": "model_fault", "detail": "it broke"}}, "scores": {}}
    tar_of(Path("s-2.tar"), {"1.png": png("red"), "1.txt": b"x"})
    command(service, "batch", "s-2.tar", "-o", "out", "-m", "vqascore")
    service.entry = {}
    command(service, *TO_FOLDER)
    before = Path("out/s-0.parquet").stat().st_mtime_ns
    assert "4 of 5 rows" not in command(service, *TO_FOLDER)[2]
    status, _, err = command(service, *TO_FOLDER, "--retry")

    assert 1 == status
    assert (
        "4 of 5 rows have all scores; 1 were requested in this run; without a score: 1 unreadable_row" in err
    )
    assert before == Path("out/s-0.parquet").stat().st_mtime_ns
    assert {"vqascore": 0.5} == next(lines_of(Path("out/s-2.parquet")))["scores"]


def test_an_interrupted_retry_goes_on_by_itself(command, service, shards):
    """Its journal has newer results than the file."""
    command(service, *TO_FOLDER)
    Path("out/s-1.parquet.part.jsonl").write_bytes(b"")
    _, _, err = command(service, *TO_FOLDER)

    assert "; 1 were requested in this run" in err
    assert not Path("out/s-1.parquet.part.jsonl").exists()


def test_a_page_shows_the_worst_of_all_shards(command, service, shards):
    """With their pictures and their numbers in the whole data set."""
    command(service, *TO_FOLDER, "--html", "page.html", "--html-pictures", "5")
    page = Path("page.html").read_text("utf-8")

    assert "The 5 worst of 6" in page
    assert page.index("row 4, s-1.tar/0002") < page.index("row 1, s-0.tar/0001") < page.index("row 5, ")
    assert 4 == page.count("data:image/")


def test_a_shard_is_whole_or_absent(command, service, shards, monkeypatch):
    """After Ctrl-C the rows of the shard are in a journal, from which the same command goes on."""
    add = Results.add

    def interrupted(results, row, line):
        add(results, row, line)
        if row.image == "s-2.tar/0001":
            raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr(Results, "add", interrupted)
        status, _, err = command(service, *TO_FOLDER)
    found = {each.name for each in Path("out").iterdir() if "manifest" not in each.name}
    assert (130, {"s-0.parquet", "s-1.parquet", "s-2.parquet.part.jsonl"}) == (status, found)
    assert "1 rows are kept in out/s-2.parquet.part.jsonl, and the same command goes on" in err

    status, _, err = command(service, *TO_FOLDER)
    assert "5 of 6 rows have all scores; 1 were requested in this run" in err
    assert not Path("out/s-2.parquet.part.jsonl").exists()
    assert 2 == len(list(lines_of(Path("out/s-2.parquet"))))


def test_a_finished_shard_of_other_metrics_is_not_taken_for_finished(command, service, shards):
    """The command ends before anything is scored."""
    command(service, *TO_FOLDER)
    asked = len(service.sent)
    status, _, err = command(service, *TO_FOLDER, "-m", "clipscore")

    assert (2, asked) == (status, len(service.sent))
    assert "out/s-0.parquet was scored with the metrics" in err


def test_shards_of_parquet_are_scored_into_a_folder(command, service, tmp_path):
    """A broken file and one without rows do not end the run."""
    (tmp_path / "in").mkdir()
    rows = [{"image": {"bytes": png("red"), "path": f"{n}.png"}, "prompt": f"p{n}"} for n in range(3)]
    pq.write_table(pa.Table.from_pylist(rows), tmp_path / "in" / "a.parquet")
    pq.write_table(pa.Table.from_pylist(rows[:0], pa.Table.from_pylist(rows).schema), "in/b.parquet")
    (tmp_path / "in" / "c.parquet").write_bytes(b"no Parquet")
    status, _, err = command(service, "batch", "in", "-o", "out/", "-m", "vqascore")

    assert 1 == status
    assert "3 of 4 rows have all scores" in err
    assert "cannot read c.parquet, row 1: the shard cannot be read from row 1 on: " in err
    assert not Path("out/b.parquet").exists()
    assert ["0.png", "1.png", "2.png"] == [row["image"] for row in lines_of(Path("out/a.parquet"))]


NOT_UTF_8 = b"na\xe9".decode(errors="surrogateescape")
HALF = {"1.png": png("red"), "1.json": b'{"prompt": "x", "tag\\ud83d": "\\ud83d", "": "\\u0000"}'}


@pytest.mark.parametrize("members", [{f"{NOT_UTF_8}.png": png("red"), f"{NOT_UTF_8}.txt": b"x"}, HALF])
@pytest.mark.parametrize("out", ["out", "out.parquet", "out.csv"])
def test_texts_that_are_not_unicode_cost_their_sample_alone(command, service, shards, members, out):
    """A name in Latin-1 in a tar, half a character in a name of JSON: results are written and read."""
    tar_of(Path("s-1.tar"), members)
    before, _, err = command(service, *(out if each == "out" else each for each in TO_FOLDER))
    status, _, again = command(service, *(out if each == "out" else each for each in TO_FOLDER))

    assert (int(members is not HALF),) * 2 == (before, status)
    assert ("5 of 5 rows" if members is HALF else "4 of 5 rows have all scores") in err
    assert "; 0 were requested" in again
    if out == "out":
        assert all(Path(f"out/s-{number}.parquet").is_file() for number in range(3))
    if members is HALF and out != "out":
        [line] = [line for line in lines_of(Path(out)) if line["image"] == "s-1.tar/1"]
        assert "?" == line["columns"]["tag?"]


def test_a_shard_whose_name_is_not_unicode_has_a_file(command, service, tmp_path):
    """Its samples have names that are not text; the shard beside it is scored."""
    (tmp_path / "in").mkdir()
    for name in (NOT_UTF_8, "b"):
        tar_of(tmp_path / "in" / f"{name}.tar", {"1.png": png("red"), "1.txt": b"x"})
    status, _, err = command(service, "batch", "in", "-o", "out", "-m", "vqascore")

    assert 1 == status
    assert "1 of 2 rows have all scores; 1 were requested" in err
    assert {f"{NOT_UTF_8}.parquet", "b.parquet"} <= {each.name for each in Path("out").iterdir()}


def test_a_column_of_one_shard_that_a_matrix_adds_is_an_error_of_its_rows(command, service, shards):
    """The shards around it are scored."""
    for number in range(2):
        files = ({f"{n}.png": png("red"), f"{n}.txt": b"x"} for n in range(50))
        tar_of(Path(f"s-{number}.tar"), dict(chain.from_iterable(each.items() for each in files)))
    tar_of(Path("s-2.tar"), {"1.png": png("red"), "1.json": b'{"prompt": "x", "picture": 1}'})
    status, _, err = command(service, *TO_FOLDER, "--matrix")

    assert 1 == status
    assert "100 of 101 rows have all scores" in err
    assert "--matrix adds a column picture" in err


def test_a_finished_shard_of_other_models_is_not_taken_for_finished(command, service, shards):
    """Even if its first sample has no scores."""
    tar_of(Path("s-0.tar"), {"1.txt": b"no picture", "2.png": png("red"), "2.txt": b"x"})
    command(service, *TO_FOLDER)
    service.labels = ["clip@2"]
    status, _, err = command(service, *TO_FOLDER)

    assert 2 == status
    assert "out/s-0.parquet was scored with the models" in err


def test_a_column_that_is_missing_is_said_before_anything_is_scored(command, service, shards):
    """For a folder, too."""
    status, _, err = command(service, *TO_FOLDER, "--prompt-column", "text")

    assert (2, []) == (status, service.sent)
    assert "no column 'text'; there are prompt, good, image: --prompt-column NAME" in err
    assert not Path("out").exists()


@pytest.mark.parametrize(
    ("arguments", "why"),
    [
        (("s-{0..2}.tar", "-o", "out.txt"), "must end in .jsonl, .parquet, .csv"),
        (("s-{0..2}.tar", "-o", "no/such/out"), "there is no folder"),
        (("s-0.tar", "-o", "s-0.tar"), "the results would overwrite the data set"),
        (("s-0.tar", "-o", "out", "-p", "x"), "--prompt is for a folder of pictures alone"),
        (("s-{0..9}.tar", "-o", "out"), "7 of 10 files are missing, first s-3.tar"),
        (("rows.jsonl", "-o", "out"), "must end in .jsonl, .parquet, .csv"),
    ],
)
def test_a_command_about_shards_that_cannot_work_is_wrong_before_anything_is_scored(
    command, service, shards, arguments, why
):
    status, _, err = command(service, "batch", *arguments, "-m", "vqascore")

    assert (2, []) == (status, service.sent)
    assert why in err


def test_several_paths_and_a_quoted_pattern_are_one_data_set(command, service, shards):
    """Which `reproduce` finds by the manifest."""
    for out, paths in (("out.jsonl", ["s-0.tar", "s-2.tar"]), ("all.jsonl", ["s-[02].tar"])):
        status, _, err = command(service, "batch", *paths, "-o", out, "-m", "vqascore")

        assert 0 == status, err
        assert ["s-0.tar/0001", "s-0.tar/0002", "s-2.tar/0001", "s-2.tar/0002"] == [
            row["image"] for row in lines(Path(out))
        ]
        assert 0 == command(service, "reproduce", f"{out}.manifest.json")[0]


@pytest.mark.parametrize(
    ("call", "said"),
    [
        (("calibrate", "out", "--label", "good", "--pass-rate", "1"), "vqascore: 5 scores from"),
        (
            ("evaluate", "auroc", "--scores", "out", "-m", "vqascore", "--label", "good"),
            "5 rows, fewer than 30",
        ),
        (("evaluate", "means", "A=out", "-m", "vqascore"), "A"),
        (("policy", "fit", "out", "--false-accept-rate", "1", "-o", "p.toml"), "vqascore"),
    ],
)
def test_figures_and_thresholds_are_of_all_results_in_a_folder(command, shards, call, said):
    """Rows are numbered throughout, and each has the columns of its sample."""
    service = Numbered("clip@1", metrics={"vqascore": metric()})
    for number in range(3):
        fields = {key: {"prompt": f"x {number}.{key}", "good": number % 2} for key in "12"}
        parts = {f"{key}.json": json.dumps(each).encode() for key, each in fields.items()}
        pictures = {f"{key}.png": png("red") for key in ("1", "2")[: 2 - (number == 2)]}
        tar_of(Path(f"s-{number}.tar"), dict(sorted((parts | pictures).items())))
    command(service, *TO_FOLDER)
    status, out, err = command(service, *call)

    assert 0 == status, err
    assert said in out
    if call[0] == "calibrate":
        assert "1 of 6 rows left out, no score: row 6" in out


def test_a_shard_that_is_not_finished_is_a_warning(command, service, shards):
    """A folder without results is an error."""
    command(service, *TO_FOLDER)
    Path("out/s-2.parquet").rename("out/s-2.parquet.part.jsonl")
    Path("empty").mkdir()
    given = ("evaluate", "means", "-m", "vqascore", "--model", "prompt", "--scores")
    _, _, err = command(service, *given, "out")

    assert "warning: out: 1 shards are not finished, first s-2.parquet.part.jsonl\n" in err
    assert (
        "empty: there are no results of `scoregate batch` in this folder"
        in command(service, *given, "empty")[2]
    )
