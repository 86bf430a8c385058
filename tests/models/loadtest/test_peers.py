"""The service beside its peers: turns, ratios, the table; and that both are asked the same."""

import subprocess
from dataclasses import fields, replace
from math import inf

import PIL.Image
import pytest

from loadtest.peers.peer import PEERS, Peer, python_of
from loadtest.peers.rounds import alternate, run_of
from loadtest.peers.rows import ROWS, Result, Run, merged
from loadtest.peers.table import (
    EVERY,
    IN_PROCESS,
    TARGETS,
    cell,
    details,
    figures,
    keep,
    met,
    plot,
    read,
    table,
    target,
)
from loadtest.report import missed
from loadtest.workloads import WORKLOADS
from tests.unit.loadtest.conftest import outcome


def runs(*values):
    return [Run(value, 10, 20) for value in values]


def test_the_two_take_turns_and_get_the_same_rounds():
    """Ours first; both are told the round, which is the seed of what they are sent."""
    asked = []

    def side(name):
        return lambda number: asked.append((name, number)) or Run(number, 0, 0)

    ours, theirs = alternate(3, side("ours"), side("theirs"))

    assert [("ours", 0), ("theirs", 0), ("ours", 1), ("theirs", 1), ("ours", 2), ("theirs", 2)] == asked
    assert [0, 1, 2] == [run.value for run in ours] == [run.value for run in theirs]


def test_the_ratio_is_the_median_of_the_rounds_ratios():
    """Not the ratio of the medians, which here is 1."""
    assert 2 == Result("burst", "mosec", "1", runs(10, 20, 30), runs(20, 10, 10)).ratio


@pytest.mark.parametrize(("row", "nothing"), [("burst", 0), ("under-bulk", inf)])
def test_rounds_in_which_a_peer_failed_are_told_and_not_compared(row, nothing):
    """It scored nothing, or a request never ended; the ratio would be infinite, or 0."""
    some = Result(row, "mosec", "1", runs(1, 1, 1), runs(nothing, 0.8, nothing))
    all = Result(row, "mosec", "1", runs(1), runs(nothing))

    assert (1.25, 2) == (some.ratio, some.unanswered)
    assert "1.25 · 10 / 10 · 20 / 20, it failed 2×" == cell(ROWS[row], some).replace("*", "")
    assert "it failed" == cell(ROWS[row], all)


def test_a_run_tells_the_latency_of_those_who_wait():
    """Of all, where nobody is interactive; a failed request was never answered."""
    bulk, waited = outcome(done=9.0, lane="bulk"), outcome(done=0.5)

    assert 500 == run_of([bulk, waited], 1).p50_ms
    assert 9000 == run_of([bulk], 1).p50_ms
    assert Run(1, inf, inf, 1) == run_of([outcome(status=500, scored=0)], 1)
    assert Run(2, 10, 20) == merged(runs(1, 2, 9))


def test_a_p99_must_stay_below_its_target_and_a_rate_above():
    """A ratio without a target is met by anything; that row's latencies have some."""

    def reached(row, ratio):
        return met(Result(row, "flask", "3", runs(ratio), runs(1)))

    assert reached("burst", 1)
    assert not reached("burst", 0.99)
    assert reached("under-bulk", 0.5)
    assert not reached("under-bulk", 0.51)
    assert reached("questions-1", 0.1)
    assert "p50 ≤ 1.15 (fastapi), p99 ≤ 1.2 (flask)" == target("questions-1")


def test_a_row_gates_by_its_worst_peer_and_its_latencies_by_their_own():
    """The lowest rate, the highest p99; a peer that failed in every round does not count."""
    slow = [Run(1, 30, 90), Run(1, 30, 50)]
    quick = [Run(1, 20, 30), Run(1, 20, 100)]
    measured = [
        Result("burst", "mosec", "1", runs(9), runs(10)),
        Result("burst", "flask", "3", runs(2), runs(1)),
        Result("burst", "litserve", "1", runs(1), runs(0)),
        Result("questions-1", "flask", "3", slow, quick),
        Result("under-bulk", "mosec", "1", runs(2), runs(10)),
        Result("under-bulk", "flask", "3", runs(6), runs(10)),
    ]
    found = {figure.name: figure for figure in figures(measured)}

    assert (0.9, "beside mosec") == (found["burst"].value, found["burst"].note)
    assert 0.6 == found["under-bulk"].value
    assert (1.5, 1.75) == (found["questions-1-p50-flask"].value, found["questions-1-p99-flask"].value)
    assert "clip-1" not in found
    wanted = {name: TARGETS[name] for name in TARGETS if name in found}
    assert ["burst", "questions-1-p99-flask", "under-bulk"] == missed([*found.values()], wanted)


def test_every_threshold_is_of_a_row_that_there_is():
    """Of all its peers, or of its p50 or p99 beside one of them; a misspelt one would never be missed."""
    rows = ROWS.values()
    beside = {f"{row.name}-{share}-{peer}" for row in rows for share in ("p50", "p99") for peer in row.peers}

    assert set(TARGETS) <= beside | set(EVERY)


def test_each_figure_is_taken_from_the_outcomes():
    """Images a second, the p99 of those who wait, and what was scored."""
    outcomes = [outcome(done=2.0, lane="bulk"), outcome(done=0.5), outcome(done=1.0, scored=0)]

    assert 1 == ROWS["burst"].value(outcomes)
    assert inf == ROWS["under-bulk"].value(outcomes)
    assert 500 == ROWS["under-bulk"].value(outcomes[:2])
    assert 2 == ROWS["corrupt"].value(outcomes)


def test_the_table_has_a_column_for_each_peer_and_marks_what_is_missed():
    """With its version; of the corrupt picture both numbers stand there."""
    results = [
        Result("burst", "litserve", "0.2", runs(100), runs(80)),
        Result("burst", "flask", "3", runs(100), runs(125)),
        Result("corrupt", "litserve", "0.2", runs(127), runs(96)),
        Result("loop-8-calls", IN_PROCESS, "", runs(50), runs(10)),
    ]

    assert [
        "| ours over theirs · p50 · p99, ms | litserve 0.2 | flask 3 | in process | target |",
        "|---|---|---|---|---|",
        "| 512 single requests at once | 1.25 · 10 / 10 · 20 / 20 | **0.80** · 10 / 10 · 20 / 20 |  | ≥ 1 |",
        "| one corrupt picture in 128: others scored | 127 / 96 · 10 / 10 · 20 / 20 |  |  | ≥ 1 |",
        "| 8 questions, over a loop of single calls |  |  | 5.00 · 10 / 10 · 20 / 20 | ≥ 4 |",
    ] == list(table(results))
    assert "| burst | flask | images/s | 100.0 | 125.0 | 0 / 0 | 1 rounds |" in [*details(results)]


def test_what_is_measured_anew_takes_the_place_of_what_was_there(tmp_path):
    """Rows measured alone keep the others; requests never answered are read as they were written."""
    file = tmp_path / "build" / "peers.json"
    one, other = (
        Result("4x128", "flask", "3", runs(1), runs(1)),
        Result("burst", "flask", "3", runs(1), runs(1)),
    )
    keep([one, other], file)
    late = replace(one, theirs=[Run(1, 5, inf, 3)])

    assert [other, late] == keep([late], file)
    assert [other, late] == read(file)
    assert [] == read(tmp_path / "nothing.json")


def test_the_table_is_drawn(tmp_path):
    """A bar for each ratio, none for the corrupt picture."""
    results = [
        Result(row, "flask", "3", runs(3, 4), runs(2, 8)) for row in ("burst", "under-bulk", "corrupt")
    ]
    plot(results, tmp_path / "peers.png")

    with PIL.Image.open(tmp_path / "peers.png") as picture:
        assert "PNG" == picture.format


@pytest.mark.parametrize("name", ROWS)
def test_every_row_sends_a_workload_that_there_is_to_peers_that_there_are(name):
    """And asks each for what its format knows."""
    row = ROWS[name]

    assert row.spec.workload in WORKLOADS
    assert set(row.peers) <= set(PEERS)
    assert {"infinity"} != set(row.peers)
    assert row is EVERY[name]


def test_the_peers_versions_are_those_of_their_locks():
    """What the table shows is what is installed."""
    assert all(f"{peer.package}=={peer.version}" in peer.lock.read_text("utf-8") for peer in PEERS.values())


def test_an_environment_is_made_once_for_a_lock_and_finds_the_packages_of_this_one(tmp_path):
    """Its own come first; a changed lock makes it anew."""
    installed, file = [], tmp_path / "requirements.lock"

    class Locked(Peer):
        lock = file

    def install(python, lock):
        installed.append((python, lock.read_text()))

    peer = Locked(**{each.name: getattr(PEERS["mosec"], each.name) for each in fields(Peer)})
    file.write_text("peer==1\n")
    pythons = {python_of(peer, tmp_path, install), python_of(peer, tmp_path, install)}
    assert 1 == len(pythons) == len(installed)

    file.write_text("peer==2\n")
    python = python_of(peer, tmp_path, install)
    assert [(python, "peer==1\n"), (python, "peer==2\n")] == installed
    found = "import importlib.util, sys; print(sys.prefix, importlib.util.find_spec('torch').origin)"
    done = subprocess.run([python, "-c", found], capture_output=True, text=True, check=True)
    prefix, torch = done.stdout.split()
    assert str(tmp_path / "mosec" / "venv") == prefix
    assert not torch.startswith(prefix)
