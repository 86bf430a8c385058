"""What 1,000 pictures cost: read from the service's own instruments, and scaled."""

import io
from base64 import b64decode
from collections import Counter

import PIL.Image

from loadtest.costs import Cost, MetricCost, cost_of, drawn, table

NOTHING = Cost(0.0, Counter())


def found(seconds, **calls):
    return MetricCost(NOTHING, Cost(seconds, Counter(calls)))


def test_calls_of_all_lanes_count_and_lost_ones_do_not():
    """As the service's instruments print them."""
    said = (
        "# TYPE process_cpu_seconds_total counter\n"
        "process_cpu_seconds_total 12.5\n"
        'scoregate_calls_total{lane="bulk",model="vqa",result="ok"} 30.0\n'
        'scoregate_calls_total{lane="interactive",model="vqa",result="ok"} 4.0\n'
        'scoregate_calls_total{lane="bulk",model="vqa",result="error"} 9.0\n'
        'scoregate_calls_total{lane="bulk",model="clip",result="ok"} 1.0\n'
    )

    assert Cost(12.5, Counter(vqa=34, clip=1)) == cost_of(said)


def test_a_cost_since_another_names_only_the_models_that_were_called():
    """Those of the metric before are not its own."""
    before, after = Cost(1.0, Counter(clip=5, vqa=2)), Cost(4.5, Counter(clip=5, vqa=9))

    assert Cost(3.5, Counter(vqa=7)) == after.since(before)


def test_a_table_is_for_a_thousand_pictures_and_the_cheapest_stands_first():
    """Beside clipscore; a metric that failed has no figures, and stands last."""
    written = MetricCost(Cost(2.0, Counter(questions=100)), Cost(3.0, Counter(vqa=350)))
    failed = MetricCost(NOTHING, NOTHING, "call_refused: no")
    lines = list(table({"judge": failed, "dsg": written, "clipscore": found(1.0, clip=200)}, 100))

    assert [
        "| `clipscore` | 10.0 s | 1.0 | 2,000 clip | – | – |",
        "| `dsg` | 30.0 s | 3.0 | 3,500 vqa | 20 s | 1,000 questions |",
        "| `judge` | no figures: call_refused: no | | | | |",
    ] == lines[2:]


def test_every_picture_can_be_scored_by_every_metric():
    """GenEval has words for its prompt, and something is written there."""
    items = drawn(6, "test")

    assert 6 == len(items) == len({item["prompt"] for item in items})
    for item in items:
        assert item["options"]["geneval"]["include"]
        assert "OPEN" == item["options"]["ocr"]["text"]
        corner = PIL.Image.open(io.BytesIO(b64decode(item["image"]))).crop((0, 0, 40, 20))
        assert (0, 0, 0) in {colour for _, colour in corner.getcolors(800)}
