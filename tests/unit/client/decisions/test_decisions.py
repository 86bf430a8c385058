"""`scoregate decisions` on files that the service wrote: exported, erased, labelled, sampled."""

import csv
import json
import sqlite3
from collections import Counter
from contextlib import closing

import pyarrow.parquet
import pytest

from scoregate.cli.main import main
from scoregate.decisions import logs as client_logs
from scoregate.decisions.erasure import EraseSettings, erase
from scoregate.decisions.labels import allotted
from scoregate.errors import NoResultError
from service.decisions import schema
from service.decisions.log import opened
from tests.support.decision_logs import write
from tests.support.decision_records import record

DAY = 86_400


@pytest.fixture(autouse=True)
def folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.fixture
def logs(folder):
    """The files of two replicas."""
    start = 1_800_000_000.0  # 2027-01-15T08:00Z
    return [
        write(
            folder / "decisions-1.sqlite3",
            record("a", time=start, caller_id="ann"),
            record("b", time=start + DAY, decision="reject", scores={"vqascore": 0.1, "dsg": 0.5}),
        ),
        write(
            folder / "decisions-2.sqlite3",
            record("c", time=start + 2 * DAY, caller_id="ann", policy="strict@000000000000", scores={}),
        ),
    ]


def run(capsys, *arguments):
    """The status of a command, and what it printed."""
    try:
        status = main(["decisions", *arguments])
    except SystemExit as ended:
        status = ended.code
    said = capsys.readouterr()
    return status, said.out, said.err


def rows(path, query):
    with closing(sqlite3.connect(path)) as connection:
        return connection.execute(query).fetchall()


def test_the_client_reads_the_version_that_the_service_writes():
    """They are packages of their own, and each has the number."""
    assert schema.VERSION == client_logs.VERSION


def test_the_rows_of_several_logs_are_exported_together(logs, folder, capsys):
    """With objects for scores and models, and the time as text."""
    assert (0, "", "3 decisions\n") == run(capsys, "export", *logs, "-o", "out.jsonl")
    found = [json.loads(line) for line in (folder / "out.jsonl").read_text().splitlines()]

    assert ["a", "b", "c"] == [each["decision_id"] for each in found]
    assert {"vqascore": 0.1, "dsg": 0.5} == found[1]["scores"]
    assert "2027-01-15T08:00:00.000+00:00" == found[0]["time"]
    assert [(0, None)] * 3 == [(each["labels"], each["good"]) for each in found]


def test_a_flat_table_has_a_column_for_each_metric(logs, folder, capsys):
    """In CSV and in Parquet; a cell is empty where the row has no such score."""
    run(capsys, "export", *logs, "-o", "out.csv")
    run(capsys, "export", *logs, "-o", "out.parquet")
    with (folder / "out.csv").open(newline="") as file:
        texts = [(each["vqascore"], each["dsg"], each["errors"]) for each in csv.DictReader(file)]
    table = pyarrow.parquet.read_table(folder / "out.parquet")

    assert [("0.91", "", "{}"), ("0.1", "0.5", "{}"), ("", "", "{}")] == texts
    assert [0.91, 0.1, None] == table["vqascore"].to_pylist()
    assert ["a", "b", "c"] == table["decision_id"].to_pylist()


@pytest.mark.parametrize("suffix", ["csv", "parquet"])
def test_a_score_is_never_written_into_the_column_of_the_labels(folder, capsys, suffix):
    """A composite may have the name of any column; JSON Lines have its scores apart."""
    write(folder / "log.sqlite3", record(scores={"good": 0.9}))
    code, out, err = run(capsys, "export", "log.sqlite3", "-o", f"out.{suffix}")

    assert (2, "") == (code, out)
    assert "the metric good has the name of a column" in err
    assert ["log.sqlite3", "log.sqlite3.lock"] == sorted(path.name for path in folder.iterdir())
    assert 0 == run(capsys, "export", "log.sqlite3", "-o", "out.jsonl")[0]


@pytest.mark.parametrize(
    ("chosen", "expected"),
    [
        (("--policy", "show"), ["a", "b"]),
        (("--policy", "strict@000000000000"), ["c"]),
        (("--policy", "sho"), []),
        (("--decision", "reject"), ["b"]),
        (("--since", "2027-01-16T08:00Z"), ["b", "c"]),
        (("--since", "2027-01-17", "--policy", "show"), []),
    ],
)
def test_rows_are_chosen_by_time_policy_and_decision(logs, folder, capsys, chosen, expected):
    """A policy is its name, of all its versions, or the id of one."""
    run(capsys, "export", *logs, "-o", "out.jsonl", *chosen)
    lines = (folder / "out.jsonl").read_text().splitlines()

    assert expected == [json.loads(line)["decision_id"] for line in lines]


@pytest.mark.parametrize(
    ("whose", "left"),
    [
        (("--caller", "ann"), ["b"]),
        (("--id", "b"), ["a", "c"]),
        (("--picture", "AB" * 32), []),
        (("--caller", "bob"), ["a", "b", "c"]),
    ],
)
def test_a_persons_rows_are_erased_in_all_logs(logs, folder, capsys, whose, left):
    """With their labels and samples; the command says how many decisions."""
    with (folder / "labels.csv").open("w") as file:
        file.write("decision_id,good\na,1\nb,0\nc,1\n")
    run(capsys, "label", *logs, "labels.csv")
    run(capsys, "sample", *logs, "-n", "3", "-o", "drawn.csv")
    status, out, _ = run(capsys, "erase", *logs, *whose)

    assert (0, f"{3 - len(left)} decisions erased\n") == (status, out)
    for table in ("decisions", "labels", "samples"):
        found = [id for log in logs for (id,) in rows(log, f"SELECT decision_id FROM {table}")]
        assert left == sorted(found), table


def test_what_is_erased_is_in_no_file_any_more(folder, capsys):
    """Neither in the log nor in the write-ahead log of a service that has it open."""
    path = folder / "decisions.sqlite3"
    service = opened(path)
    with service.connection:
        rows = [schema.row_of(record("a", prompt="ann's secret", caller_id="ann"), "text")]
        service.connection.executemany(schema.INSERT, rows)
    stood = any(b"ann's secret" in each.read_bytes() for each in folder.iterdir())
    done = run(capsys, "erase", path.name, "--caller", "ann")
    stands = any(b"ann's secret" in each.read_bytes() for each in folder.iterdir())
    service.close()

    assert (True, False) == (stood, stands)
    assert (0, "1 decisions erased\n", "") == done


def test_a_process_that_reads_old_content_is_named_as_the_reason_for_another_run(folder, capsys):
    """The rows are gone, but its view of the file keeps their content on the disk."""
    name = write(folder / "decisions.sqlite3", record("a", caller_id="ann"))
    with closing(sqlite3.connect(folder / name, isolation_level=None)) as reader:
        reader.execute("BEGIN")
        reader.execute("SELECT count(*) FROM decisions").fetchone()
        with pytest.raises(NoResultError, match="run this again"):
            erase(EraseSettings(logs=[folder / name], caller="ann"), busy_s=0.01)
        reader.execute("ROLLBACK")
    second = run(capsys, "erase", name, "--caller", "ann")

    assert (0, "0 decisions erased\n", "") == second


def test_a_label_by_a_callers_id_is_of_all_its_rows(logs, folder, capsys):
    """Rows without a label are counted, and an id that no log has is named, with status 1."""
    (folder / "labels.csv").write_text(
        "caller_id,decision_id,good,who\nann,,1,eve\n,b,0,\n,b,true,\nbob,,1,\n,c,,\n", "utf-8"
    )
    status, out, err = run(capsys, "label", *logs, "labels.csv")
    run(capsys, "export", *logs, "-o", "out.jsonl")
    found = [json.loads(line) for line in (folder / "out.jsonl").read_text().splitlines()]

    assert (1, "4 labels stored; 1 rows without a label\n") == (status, out)
    assert "scoregate: no log has 1 of the ids: bob\n" == err
    assert [(1, 1.0), (2, 0.5), (1, 1.0)] == [(each["labels"], each["good"]) for each in found]


def test_a_label_in_another_replicas_file_is_joined(logs, folder, capsys):
    """Any replica stores the label that a request brings, without looking the decision up."""
    with closing(sqlite3.connect(folder / logs[1])) as connection, connection:
        connection.execute("INSERT INTO labels VALUES ('a', 1, NULL, 0)")
    run(capsys, "export", *logs, "-o", "out.jsonl")
    first = json.loads((folder / "out.jsonl").read_text().splitlines()[0])

    assert ("a", 1, 1.0) == (first["decision_id"], first["labels"], first["good"])


@pytest.mark.parametrize(
    ("table", "message"),
    [
        ("decision_id,good\na,1\nb,maybe\n", "row 2, column good: "),
        ("decision_id,label\na,1\n", "row 1: no column 'good'"),
        ("who,good\nann,1\n", "row 1: it has neither a decision_id nor a caller_id"),
    ],
)
def test_a_table_with_a_wrong_row_stores_nothing(logs, folder, capsys, table, message):
    """The line names the row and the column."""
    (folder / "labels.csv").write_text(table, "utf-8")
    status, _, err = run(capsys, "label", *logs, "labels.csv")

    assert 2 == status
    assert message in err
    assert [] == [row for log in logs for row in rows(log, "SELECT * FROM labels")]


def test_rows_are_drawn_by_decision_and_their_probabilities_are_stored(folder, capsys):
    """A rare decision gives all its rows; the table has a column for the label, and takes it back."""
    accepted = [record(f"a{n}", time=float(n)) for n in range(40)]
    rejected = [record(f"r{n}", time=float(n), decision="reject") for n in range(3)]
    names = [write(folder / "1.sqlite3", *accepted), write(folder / "2.sqlite3", *rejected)]
    status, out, _ = run(capsys, "sample", *names, "-n", "13", "-o", "to-label.csv")
    with (folder / "to-label.csv").open(newline="") as file:
        drawn = list(csv.DictReader(file))
    stored = [row for name in names for row in rows(name, "SELECT stratum, probability, draw FROM samples")]

    assert (0, "accept: 10 of 40\nreject: 3 of 3\n") == (status, out)
    assert {"accept": 10, "reject": 3} == Counter(each["decision"] for each in drawn)
    assert len({each["decision_id"] for each in drawn}) == len(drawn)
    assert {("accept", 0.25): 10, ("reject", 1.0): 3} == Counter(each[:2] for each in stored)
    assert 1 == len({draw for _, _, draw in stored})
    assert (0, "0 labels stored; 13 rows without a label\n", "") == run(
        capsys, "label", *names, "to-label.csv"
    )


def test_a_table_that_may_hold_labels_is_not_replaced(logs, folder, capsys):
    """Nor is a drawing stored whose table could not be written."""
    (folder / "to-label.csv").write_text("people's work", "utf-8")
    status, _, _ = run(capsys, "sample", *logs, "-n", "2", "-o", "to-label.csv")

    assert (2, "people's work") == (status, (folder / "to-label.csv").read_text())
    assert [] == [row for log in logs for row in rows(log, "SELECT * FROM samples")]


@pytest.mark.parametrize(
    ("sizes", "n", "expected"),
    [
        ({"accept": 100, "reject": 100}, 10, {"accept": 5, "reject": 5}),
        ({"accept": 100, "reject": 2, "review": 30}, 60, {"accept": 29, "reject": 2, "review": 29}),
        ({"accept": 1, "reject": 2}, 60, {"accept": 1, "reject": 2}),
        ({"accept": 5, "reject": 5}, 1, {"accept": 0, "reject": 1}),
    ],
)
def test_rows_are_allotted_evenly_and_a_small_stratum_is_drawn_whole(sizes, n, expected):
    """What it lacks goes to the others."""
    assert expected == allotted(sizes, n)


@pytest.mark.parametrize(
    ("content", "message"),
    [(None, "there is no such file"), (b"no database" * 100, "not a database"), (b"", "no log of decisions")],
)
def test_a_file_that_is_no_log_is_an_error_and_stays(folder, capsys, content, message):
    """Status 2 and one line; nothing is created."""
    if content is not None:
        (folder / "x.sqlite3").write_bytes(content)
    before = {each.name: each.read_bytes() for each in folder.iterdir()}
    status, _, err = run(capsys, "erase", "x.sqlite3", "--id", "a")

    assert 2 == status
    assert message in err
    assert 1 == err.count("\n")
    assert before == {each.name: each.read_bytes() for each in folder.iterdir()}


def test_an_export_that_fails_leaves_the_earlier_table(folder, logs, capsys):
    """And no other file beside it."""
    (folder / "out.jsonl").write_text("earlier", "utf-8")
    with closing(sqlite3.connect(folder / logs[1])) as connection, connection:
        connection.execute("UPDATE decisions SET scores = 'no JSON'")
    status, _, _ = run(capsys, "export", *logs, "-o", "out.jsonl")

    assert (2, "earlier") == (status, (folder / "out.jsonl").read_text())
    assert [] == [*folder.glob("*.new")]


@pytest.mark.parametrize(
    ("damage", "said"),
    [
        ("scores = '{'", "its scores are not JSON"),
        ("scores = '{\"vqascore\": NaN}'", "its scores are not JSON"),
        ("scores = '[0.5]'", "its scores are [0.5]"),
        ('scores = \'{"vqascore": "0.5"}\'', 'its scores are {"vqascore": "0.5"}'),
        ("errors = '{\"dsg\": 1}'", 'its errors are {"dsg": 1}'),
        ("skipped = '{}'", "its skipped are {}"),
        ("models = 'vqa'", "its models are not JSON"),
        ("time = 1e300", "its time is 1e+300"),
        ("decision = 'maybe'", "its decision is 'maybe'"),
    ],
)
@pytest.mark.parametrize("command", ["export", "report", "try"])
def test_a_damaged_row_is_an_error_that_names_the_file_and_the_decision(
    logs, folder, capsys, command, damage, said
):
    """By every command that reads rows; a policy that is tried reads scores and errors alone."""
    with closing(sqlite3.connect(logs[0])) as connection, connection:
        connection.execute(f"UPDATE decisions SET {damage} WHERE decision_id = 'b'")
    (folder / "new.toml").write_text('[policies.new]\naccept = "vqascore >= 0.7"\n')
    calls = {
        "export": ("decisions", "export", *logs, "-o", "out.csv"),
        "report": ("decisions", "report", *logs),
        "try": ("policy", "try", "new.toml", *logs),
    }
    status = main(calls[command])
    err = capsys.readouterr().err

    if command == "try" and damage.startswith(("skipped", "models")):
        assert 0 == status
    else:
        assert (2, f"scoregate: {folder}/decisions-1.sqlite3, decision b: {said}\n") == (status, err)
    assert not (folder / "out.csv").exists()
