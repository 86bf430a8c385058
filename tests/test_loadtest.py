"""The load test measures what it says: its pure parts, and its doubles around the real app."""

import ast
import asyncio
import hashlib
import json
import subprocess
import sys
from base64 import b64decode
from itertools import islice
from pathlib import Path
from random import Random

import httpx
import PIL.Image
import pytest

from loadtest import baselines, corpus, report
from loadtest.__main__ import MEASURES
from loadtest.client import Client, parse_head
from loadtest.doubles import PROFILE, ROLES, Double
from loadtest.generator import exchange
from loadtest.plot import by_lane, plot
from loadtest.queueing import largest
from loadtest.report import Figure, Threshold, missed, read_thresholds, table
from loadtest.results import (
    Outcome,
    drain_ratios,
    goodput,
    latencies,
    lateness,
    percentile,
    throughput,
)
from loadtest.shape import Shape, perfect
from loadtest.workloads import WORKLOADS, Arrival, Spec, plan
from service.app import create_app
from service.schemas import ScoreRequest
from service.settings import load_settings

ROOT = Path(__file__).parents[1]


@pytest.fixture(scope="session")
def folder(tmp_path_factory):
    """A corpus of tiny pictures under every kind's name: sizes are not the point here."""
    folder = tmp_path_factory.mktemp("corpus")
    for name, kind in corpus.KINDS.items():
        small = corpus.Kind(16, kind.format, kind.quality)
        for number in range(corpus.EACH):
            data = corpus.encode(corpus.draw(16, number), small)
            (folder / f"{name}-{number}.{kind.format.lower()}").write_bytes(data)
    return folder


def outcome(due=0.0, done=1.0, sent=None, lane="interactive", status=200, scored=1, **more):
    return Outcome(due, due if sent is None else sent, done, lane, 1, scored, status, **more)


def refusal(at, says):
    return outcome(at, at, status=429, scored=0, failure="lane_full", retry_after_s=says)


# Workloads


@pytest.mark.parametrize("workload", WORKLOADS)
def test_every_request_of_a_workload_is_one_that_the_service_takes(workload, folder):
    """Bodies fit the wire types, times rise, and no request is larger than the service's limit."""
    made = plan(Spec(workload, scale=0.03, rate=8, seconds=1), folder)

    assert made.arrivals
    assert [a.at_s for a in made.arrivals] == sorted(a.at_s for a in made.arrivals)
    for arrival in made.arrivals:
        wanted = ScoreRequest.model_validate_json(arrival.body, context={"max_items": 128})
        assert (arrival.items, arrival.lane) == (len(wanted.all_items()), wanted.priority)


@pytest.mark.parametrize("workload", WORKLOADS)
def test_no_two_pictures_of_a_run_are_the_same(workload, folder):
    """By digest, so that no cache and no coalescing can answer for the model."""
    made = plan(Spec(workload, scale=0.03, rate=8, seconds=1), folder)
    items = [item for arrival in made.arrivals for item in json.loads(arrival.body)["items"]]
    digests = [hashlib.sha256(b64decode(item["image"])).digest() for item in items]

    assert len(set(digests)) == len(digests)


def test_a_workload_is_the_same_every_time_and_another_with_another_seed(folder):
    """The seed decides everything."""
    first, again, other = (plan(Spec("mixed", seed, 0.01, seconds=2), folder) for seed in (1, 1, 2))

    assert first == again
    assert first != other


def test_a_burst_has_its_real_size_at_scale_one(folder):
    """512 single images at once, 16 for each of 32 prompts, shuffled."""
    made = plan(Spec("rl-burst"), folder).arrivals
    prompts = [json.loads(arrival.body)["items"][0]["prompt"] for arrival in made]

    assert {(0.0, 1, "bulk")} == {(arrival.at_s, arrival.items, arrival.lane) for arrival in made}
    assert 512 == len(prompts)
    assert all(prompts.count(prompt) % 16 == 0 for prompt in prompts)
    assert prompts != sorted(prompts, key=prompts.index)


def test_poisson_arrivals_come_at_their_rate(folder):
    """1,000 a second for two seconds: within four standard deviations of 2,000."""
    made = plan(Spec("poisson", rate=1000, seconds=2), folder).arrivals

    assert 2000 == pytest.approx(len(made), abs=180)
    assert all(0 < arrival.at_s < 2 for arrival in made)


def test_pictures_have_the_sizes_that_trainers_send(tmp_path):
    """A 512² JPEG at quality 75 has about 37 kB, as a request of nine has 0.33 MB."""
    [picture] = islice(corpus.distinct("rl", Random(0), tmp_path), 1)

    assert 25_000 < len(picture) < 50_000


# Results


def test_a_percentile_is_a_value_that_was_measured():
    """Nearest rank: of 1 to 100, p99 is 99."""
    values = list(range(100, 0, -1))

    assert [1, 50, 99, 100] == [percentile(values, share) for share in (0.0, 0.5, 0.99, 1.0)]
    with pytest.raises(ValueError, match="no values"):
        percentile([], 0.5)


def test_latency_counts_from_when_a_request_was_due():
    """A generator that is late does not make the server look faster."""
    late = outcome(due=1.0, sent=1.5, done=2.0)

    assert 1.0 == late.latency_s
    assert 0.5 == lateness([late])


def test_a_request_without_all_its_scores_was_never_answered():
    """A failure is worse than the slowest answer, not better."""
    assert [1.0, float("inf")] == latencies([outcome(), outcome(scored=0)])


@pytest.mark.parametrize(
    ("what", "kind"),
    [
        (outcome(), "ok"),
        (outcome(scored=0), "error"),
        (outcome(status=429, scored=0), "refused"),
        (outcome(status=503, scored=0), "refused"),
        (outcome(status=504, scored=0, failure="deadline_exceeded"), "timeout"),
        (outcome(status=0, scored=0, failure="timeout"), "timeout"),
        (outcome(status=0, scored=0, failure="ConnectionResetError"), "error"),
        (outcome(status=500, scored=0, failure="model_fault"), "error"),
    ],
)
def test_refusals_timeouts_and_errors_are_counted_apart(what, kind):
    """Each outcome is of one kind."""
    assert kind == what.kind


def test_goodput_counts_what_was_answered_in_time():
    """Over the time in which requests came, not the time the last one took."""
    run = [outcome(0, 0.5), outcome(0, 3.0), outcome(1, 1.2), outcome(1, 1.1, scored=0)]

    assert 1.0 == goodput(run, within_s=1.0, seconds=2.0)
    assert 1.0 == throughput(run)


def test_a_refusal_is_held_to_the_drain_of_what_was_accepted_before_it():
    """It met requests that were all answered 4 s later; what was accepted after it is not its queue."""
    run = [outcome(0, 3), outcome(1, 6), refusal(2, says=5.0), outcome(3, 30)]

    assert [1.25] == drain_ratios(run, least_s=3)


def test_short_predictions_and_other_failures_are_not_held_to_the_drain():
    """Below the bound, without a prediction, or no refusal at all."""
    failed = outcome(2, 2, status=500, scored=0, retry_after_s=5.0)

    assert [] == drain_ratios([outcome(0, 9), refusal(2, says=1.0), refusal(2, says=None), failed], least_s=3)


# A perfect server


def test_a_perfect_server_batches_what_waits():
    """The first goes alone; the two that come meanwhile share a batch; the batch's limit holds."""
    shape = Shape(a_ms=100, b_ms=10, max_items=2)

    assert perfect([0.0, 0.01, 0.02, 0.03], shape) == pytest.approx([0.11, 0.22, 0.21, 0.31])


def test_the_largest_share_that_passes_is_found_by_bisection():
    """As if all had been tried."""
    shares = (0.5, 0.6, 0.7, 0.8)
    asked = []

    assert 0.7 == largest(shares, lambda share: asked.append(share) or share <= 0.7)
    assert (0.0, 0.8) == (largest(shares, lambda share: False), largest(shares, lambda share: True))
    assert [0.6, 0.7, 0.8] == asked


# Thresholds


def test_a_missed_threshold_is_named_and_shown():
    """And so is one that nothing was measured for, or whose figure is not a number."""
    wanted = {
        "fast": Threshold(least=1.0),
        "slow": Threshold(most=1.0),
        "forgotten": Threshold(least=0),
        "unknown": Threshold(most=1),
    }
    figures = [
        Figure("fast", 1.0),
        Figure("slow", 1.5, "ms", "why"),
        Figure("unknown", float("nan")),
        Figure("free", 7),
    ]

    assert ["slow", "forgotten", "unknown"] == missed(figures, wanted)
    lines = [line.split() for line in table(figures, wanted)]
    assert ["slow", "1.5", "ms", "≤", "1", "MISSED", "why"] == lines[1]
    assert ["free", "7"] == lines[3]


def test_every_set_of_thresholds_can_be_read():
    """Each bounds a figure that some measure reports."""
    sources = "".join((ROOT / "loadtest" / f"{name}.py").read_text("utf-8") for name in SOURCES)
    for name in ("short", "bench"):
        thresholds = read_thresholds(name)
        assert thresholds
        assert all(f'"{figure}"' in sources or figure in COMPUTED for figure in thresholds)


SOURCES = ("overhead", "queueing", "overload", "work", "comparison")
COMPUTED = ("over_timer", "over_one_by_one")


def test_each_measure_is_documented():
    """docs/load.md has a row for each figure with a threshold."""
    page = (ROOT / "docs" / "load.md").read_text("utf-8")

    assert MEASURES
    assert all(f"`{figure}`" in page for figure in read_thresholds("short"))


def test_a_late_generator_is_told(capsys):
    """Otherwise its own queue would pass for the server's."""
    report.Report().keep("a panel", "a run", [outcome(due=0, sent=0.2)])

    assert "the generator was late, p99 200 ms" in capsys.readouterr().out


def test_runs_become_one_picture(tmp_path):
    """A panel with two lanes and a failure, and one in which nothing was answered."""
    mixed = [outcome(lane="bulk"), outcome(done=2.0), outcome(scored=0)]
    plot({"mixed": {"service": mixed}, "nothing": {"timer": [outcome(scored=0)]}}, tmp_path / "runs.png")

    with PIL.Image.open(tmp_path / "runs.png") as picture:
        assert "PNG" == picture.format
    assert ["service, bulk", "service, interactive"] == list(by_lane({"service": mixed}))


# Client and generator


def test_an_answers_head_is_read():
    """Status and length, whatever the case of the names; without a length it is no answer for us."""
    assert (429, 12) == parse_head(b"HTTP/1.1 429 Too Many\r\nx: y\r\nCONTENT-LENGTH: 12\r\n\r\n")
    with pytest.raises(ValueError, match="Content-Length"):
        parse_head(b"HTTP/1.1 200 OK\r\n\r\n")


@pytest.mark.anyio
async def test_the_client_keeps_its_connection_and_tells_a_broken_one():
    """Two exchanges over one connection; the third time the server hangs up."""
    connections = 0

    async def answer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        nonlocal connections
        connections += 1
        for _ in range(2):
            head = await reader.readuntil(b"\r\n\r\n")
            body = await reader.readexactly(parse_head(b"HTTP/1.1 0 \r\n" + head)[1])
            writer.write(b"HTTP/1.1 200 OK\r\nContent-Length: %d\r\n\r\n%b" % (len(body), body))
        await reader.readuntil(b"\r\n\r\n")
        writer.close()

    async with (
        await asyncio.start_server(answer, "127.0.0.1", 0) as server,
        Client(*server.sockets[0].getsockname()) as client,
    ):
        assert (200, b"one") == await client.post("/score", b"one")
        assert (200, b"two") == await client.post("/score", b"two")
        with pytest.raises(ConnectionResetError):
            await client.post("/score", b"three")

    assert 1 == connections


class Answering:
    """Stands in for the client."""

    def __init__(self, status, body):
        self.answer = status, json.dumps(body).encode()

    async def post(self, path, body):
        return self.answer


class Broken(Answering):
    async def post(self, path, body):
        raise ConnectionRefusedError


@pytest.mark.anyio
@pytest.mark.parametrize(
    ("client", "kind", "scored"),
    [
        (Answering(200, {"results": [{"scores": {"vqascore": 0.5}}, {"scores": {"vqascore": 1}}]}), "ok", 2),
        (Answering(200, {"results": [{"scores": {}}, {"scores": {"vqascore": 1}}]}), "error", 1),
        (Answering(429, {"code": "lane_full", "retry_after_s": 4.5}), "refused", 0),
        (Broken(0, {}), "error", 0),
    ],
)
async def test_what_came_of_a_request_is_noted(client, kind, scored):
    """The status, the scores, and what a refusal said."""
    noted = await exchange(client, Arrival(0.0, 2, "bulk", b"{}"), 0.0, 0.0, 1.0)

    assert (kind, scored) == (noted.kind, noted.scored)
    assert (4.5 if kind == "refused" else None) == noted.retry_after_s


# Doubles and baselines


@pytest.mark.anyio
async def test_the_service_serves_the_doubles_and_says_what_they_are(folder, tmp_path):
    """The real app answers a workload's request for every metric."""
    settings = load_settings(PROFILE, {"SCOREGATE_CACHE__QUESTIONS": f"sqlite:///{tmp_path}/q"})
    app = create_app(settings, {role: Double("null", role, 0, 0) for role in ROLES})
    [arrival] = plan(Spec("rl-large", scale=0.001), folder).arrivals[:1]
    body = json.loads(arrival.body) | {"metrics": ["vqascore", "clipscore", "dsg"]}
    async with app.router.lifespan_context(app), over(app) as client:
        answer = (await client.post("/score", json=body)).json()
        told = (await client.get("/models")).json()

    assert not answer["partial"]
    assert {"null-double"} == {model["family"] for model in told["models"]}


@pytest.mark.anyio
async def test_the_timer_closes_a_full_batch_and_the_others_go_one_by_one(folder):
    """Four pictures with room for two in a batch; alone they are held four times."""
    held: list[int] = []
    body = plan(Spec("rl-group", scale=0.01), folder).arrivals[0].body
    four = json.loads(body) | {"items": json.loads(body)["items"][:4]}
    for score in (baselines.Timer(held.append, 2).score, baselines.one_by_one(held.append), baselines.bare):
        async with over(baselines.app(score)) as client:
            answer = (await client.post("/score", json=four)).json()
        assert 4 == len(answer["results"])

    assert [2, 2, 1, 1, 1, 1] == held


def over(app):
    """A client without a socket."""
    return httpx.AsyncClient(transport=httpx.ASGITransport(app), base_url="http://test")


@pytest.mark.parametrize("top", ["service", "models"])
def test_nothing_of_the_service_imports_the_load_test(top):
    """A double can never be served by accident."""
    for path in (ROOT / top).rglob("*.py"):
        for node in ast.walk(ast.parse(path.read_text("utf-8"))):
            names = [alias.name for alias in node.names] if isinstance(node, ast.Import) else []
            names += [node.module or ""] if isinstance(node, ast.ImportFrom) else []
            assert not [name for name in names if name.partition(".")[0] == "loadtest"], path


@pytest.mark.integration
def test_the_service_is_as_fast_as_a_regression_would_not_be():
    """`make bench-demo`: its thresholds are far from the targets, for machines with other work."""
    command = [sys.executable, "-m", "loadtest", "--set", "bench"]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=900)

    assert 0 == done.returncode, done.stdout[-2000:] + done.stderr[-2000:]
