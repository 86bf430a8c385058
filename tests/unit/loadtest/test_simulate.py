"""The simulation of fleets, on cases that can be computed by hand."""

from random import Random
from statistics import mean

import pytest

from loadtest.shape import Shape, perfect
from loadtest.simulate.__main__ import main
from loadtest.simulate.fleet import Fleet
from loadtest.simulate.sweep import Point, least, predicted
from loadtest.simulate.trace import TRACES, Request, calls_a_second, made, read

pytestmark = pytest.mark.slow

FIXED = Shape(fixed_ms=100, per_call_ms=0, max_items=1)
GROWING = Shape(fixed_ms=100, per_call_ms=10, max_items=8)


def single(*times, lane="interactive"):
    """Requests of one call each."""
    return [Request(at, 1, 1, lane) for at in times]


def test_one_server_answers_one_after_the_other():
    """100 ms each: the second waits for the first, and the third meets an idle server."""
    assert [0.1, 0.15, 0.1] == pytest.approx(Fleet(1, FIXED).run(single(0, 0.05, 0.5)))


def test_what_comes_while_a_batch_runs_is_the_next_batch():
    """The first alone (110 ms), then two together (120 ms)."""
    took = Fleet(1, GROWING).run(single(0, 0.01, 0.02))

    assert [0.11, 0.22, 0.21] == pytest.approx(took)


def test_a_request_is_answered_with_its_last_call():
    """Two images with five questions: a batch of eight (180 ms), then one of two (120 ms)."""
    assert [0.3] == pytest.approx(Fleet(1, GROWING).run([Request(0, 2, 5, "bulk")]))


def test_two_servers_share_a_request_where_calls_are_spread_and_not_behind_a_balancer():
    """Four calls on each (140 ms), or eight on one (180 ms)."""
    request = [Request(0, 8, 1, "bulk")]

    assert [0.14] == pytest.approx(Fleet(2, GROWING).run(request))
    assert [0.18] == pytest.approx(Fleet(2, GROWING, routing="balancer").run(request))


def test_servers_that_share_a_queue_take_what_waits_when_they_become_free():
    """The first alone (110 ms), the second alone on the other server, the next two together (120 ms)."""
    took = Fleet(2, GROWING, routing="queue").run(single(0, 0.01, 0.02, 0.03))

    assert [0.11, 0.11, 0.21, 0.2] == pytest.approx(took)


def test_a_balancer_sends_a_request_to_the_server_with_the_fewest():
    """Two requests at once run side by side, and a third waits."""
    assert [0.1, 0.1, 0.2] == pytest.approx(Fleet(2, FIXED, routing="balancer").run(single(0, 0, 0)))


def test_a_server_that_has_done_its_work_gets_the_next():
    """The first is free at 100 ms, the second at 1,000 ms: it gets neither of those that come later."""
    shape = Shape(fixed_ms=0, per_call_ms=100, max_items=1)
    requests = [*single(0), Request(0, 10, 1, "interactive"), *single(0.15, 0.35)]

    assert [0.1, 1.0, 0.1, 0.1] == pytest.approx(Fleet(2, shape, routing="balancer").run(requests))


def test_interactive_calls_overtake_bulk():
    """A bulk burst of five batches waits; the interactive call is in the next one."""
    requests = [Request(0, 40, 1, "bulk"), *single(0.01)]
    bulk, interactive = Fleet(1, GROWING).run(requests)

    assert 0.17 + 0.18 >= interactive
    assert bulk > 5 * 0.18


@pytest.mark.parametrize("share", [0.3, 0.8, 1.2])
def test_one_lane_on_one_server_is_the_perfect_server(share):
    """The recursion of `loadtest/shape.py`, written without any part of the service, to a nanosecond."""
    random, at, times = Random(1), 0.0, []
    for _ in range(2000):
        at += random.expovariate(share * GROWING.capacity)
        times.append(at)

    assert perfect(times, GROWING) == pytest.approx(Fleet(1, GROWING).run(single(*times)), abs=1e-9)


@pytest.mark.parametrize("busy", [0.3, 0.5, 0.7])
def test_the_mean_wait_of_poisson_arrivals_is_the_formula_for_m_d_1(busy):
    """busy * service / (2 * (1 - busy)): Pollaczek and Khinchine, without batches."""
    random, at, times = Random(2), 0.0, []
    for _ in range(20_000):
        at += random.expovariate(busy / 0.1)
        times.append(at)
    fleet = Fleet(1, FIXED)
    waits = [seconds - 0.1 for seconds in fleet.run(single(*times))]

    assert busy * 0.1 / (2 * (1 - busy)) == pytest.approx(mean(waits), rel=0.06)
    assert busy == pytest.approx(fleet.busy_s / fleet.ended_s, rel=0.03)


def test_as_many_servers_as_calls_answer_all_at_once():
    """1,000 calls on 1,000 GPUs take as long as one."""
    point = predicted(single(*[0.0] * 1000), 1000, FIXED, request_s=0.005)

    assert {"interactive": pytest.approx(0.105)} == point.p50_s == point.p99_s


def test_a_lane_does_not_hold_while_the_queue_grows():
    """Ten calls a second are done, fifteen come: a short trace may hide it."""
    requests = single(*(step / 15 for step in range(6)))

    assert 1.5 == pytest.approx(predicted(requests, 1, FIXED).load)
    assert not predicted(requests, 1, FIXED).holds("interactive", 60)
    assert predicted(requests, 2, FIXED).holds("interactive", 0.2)


@pytest.mark.parametrize("needed", [1, 2, 3, 37, 512, 1000])
def test_the_least_number_that_holds_is_found(needed):
    """By doubling and halving; the first point that holds is the one below which none does."""
    points = least(lambda gpus: Point(gpus, {}, {}, needed / gpus), lambda point: point.load <= 1)

    assert needed == next(point.gpus for point in points if point.load <= 1)
    assert 22 >= len(points)


def test_where_a_thousand_are_not_enough_none_is_named():
    """The search ends there."""
    points = least(lambda gpus: Point(gpus, {}, {}, 2), lambda point: point.load <= 1)

    assert 1000 == points[-1].gpus


def test_calls_a_second_count_the_time_after_the_last_burst():
    """Two bursts of ten, five seconds apart, are four a second; a single one says nothing."""
    bursts = [Request(at, 10, 1, "bulk") for at in (0.0, 5.0)]

    assert 2.0 == calls_a_second(bursts)
    assert 0.0 == calls_a_second(bursts[:1])


@pytest.mark.parametrize("name", TRACES)
def test_a_trace_by_name_is_the_same_every_time(name):
    """In order of time, and twice as much at twice the scale."""
    once, again, twice = (made(name, 20, scale, 2) for scale in (1, 1, 2))

    assert once == again == sorted(once, key=lambda request: request.at_s)
    assert 2 == pytest.approx(sum(r.calls for r in twice) / sum(r.calls for r in once), rel=0.2)


def test_a_trace_is_read_from_a_file(tmp_path):
    """Columns by name, rows in any order."""
    file = tmp_path / "trace.csv"
    file.write_text("lane,time,images,questions\nbulk,2.5,9,8\ninteractive,1,1,1\n")

    assert [Request(1.0, 1, 1, "interactive"), Request(2.5, 9, 8, "bulk")] == read(file)


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("time,images,lane\n", "no column questions"),
        ("time,images,questions,lane\n", "no request"),
        ("time,images,questions,lane\n0,1,1,bulk\n1,0,1,bulk\n", "line 3: time must be"),
        ("time,images,questions,lane\nnan,1,1,bulk\n", "line 2: time must be"),
        ("time,images,questions,lane\n1,1,1,slow\n", "line 2: lane must be interactive or bulk"),
        ("time,images,questions,lane\n1,many,1,bulk\n", "line 2: invalid literal"),
        ("time,images,questions,lane\n1,1\n", "line 2: "),
    ],
)
def test_a_wrong_file_is_one_line_that_names_the_place(tmp_path, capsys, text, said):
    """And status 2."""
    file = tmp_path / "trace.csv"
    file.write_text(text)

    assert 2 == main(["--trace", str(file)])
    assert said in capsys.readouterr().err


def test_the_command_prints_the_least_gpus_and_draws_them(tmp_path, capsys, monkeypatch):
    """Status 1 where the target is below what a single call takes."""
    monkeypatch.setattr("loadtest.simulate.__main__.PICTURE", tmp_path / "simulate.png")
    short = ["--trace", "filter", "--seconds", "2", "--fixed-ms", "100", "--per-call-ms", "20"]

    assert 0 == main([*short, "--p99-ms", "2000"])
    assert "GPUs keep to a p99 of 2000 ms in the lane interactive" in capsys.readouterr().out
    assert (tmp_path / "simulate.png").read_bytes().startswith(b"\x89PNG")
    assert 1 == main([*short, "--gpus", "1", "--p99-ms", "90"])
    assert "none of 1 numbers keeps" in capsys.readouterr().out
