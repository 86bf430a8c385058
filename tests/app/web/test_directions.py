"""Metrics whose lower scores are the better ones: plug-ins may declare such."""

import pytest

from service.metrics.common.contract import Item, Metric, MetricOptions, Score
from service.metrics.common.model_calls import ModelCalls
from service.metrics.common.registry import metrics
from tests.support.pictures import b64, png

pytestmark = pytest.mark.anyio

LEVELS = [90, 10, 250, 40, 10]  # of grey; the score is a 256th
PICTURES = [b64(png(f"#{level:02x}{level:02x}{level:02x}")) for level in LEVELS]


async def level(item: Item, models: ModelCalls, options: MetricOptions) -> Score:
    """How bright the picture is."""
    return Score(item.image.rgb.getpixel((0, 0))[0] / 256, {})


@pytest.fixture
def parts():
    """A metric of either direction beside the service's own."""
    declared = [
        Metric("darkness", level, range=(0, 1), direction="lower is better"),
        Metric("brightness", level, range=(0, 1)),
    ]
    return {"metrics": lambda: {**metrics(), **{metric.name: metric for metric in declared}}}


async def places(client, **fields):
    """Index, score and acceptance of each place."""
    answer = await client.post("/rank", json={"prompt": "night", "images": PICTURES, **fields})
    assert 200 == answer.status_code, answer.text
    return [
        (each["index"], each["score"] * 256, each["accepted"], each["decided_by"])
        for each in answer.json()["ranking"]
    ]


async def test_the_lowest_score_is_ranked_first_and_stays_the_score(serve):
    """Of equals the first of the request comes first."""
    async with serve() as client:
        ranked = await places(client, metric="darkness", top_k=2)

    assert [1, 4, 3, 0, 2] == [index for index, *_ in ranked]
    assert [10, 10, 40, 90, 250] == [score for _, score, *_ in ranked]
    assert [True, True, False, False, False] == [accepted for *_, accepted, _ in ranked]


async def test_the_lowest_score_wins_a_comparison(serve):
    """Equal ones tie."""
    async with serve() as client:
        body = {"prompt": "night", "images": PICTURES, "metric": "darkness"}
        answer = (await client.post("/compare", json=body)).json()

    assert [1, 4, 3, 0, 2] == answer["ranking"]
    assert [(1, 4)] == [(pair["a"], pair["b"]) for pair in answer["pairs"] if pair["winner"] == "tie"]


async def test_the_threshold_is_then_the_highest_score_that_is_accepted(serve):
    """One that equals it is."""
    async with serve() as client:
        ranked = await places(client, metric="darkness", threshold=40 / 256)

    assert [1, 4, 3] == [index for index, _, accepted, _ in ranked if accepted]


@pytest.mark.parametrize(
    ("metric", "cheap", "order"),
    [("darkness", "brightness", [0, 2, 3, 1, 4]), ("brightness", "darkness", [1, 4, 3, 0, 2])],
)
async def test_in_a_cascade_each_metric_orders_by_its_own_direction(serve, metric, cheap, order):
    """The best two by the cheap one go on; the others stand behind by it."""
    async with serve() as client:
        ranked = await places(client, metric=metric, cascade={"metric": cheap, "keep": 2})

    assert order == [index for index, *_ in ranked]
    assert [metric] * 2 + [cheap] * 3 == [decided for *_, decided in ranked]


async def test_a_rerankers_results_come_best_first(serve):
    """With the scores as they are."""
    body = {"model": "darkness", "query": "night", "documents": PICTURES, "top_n": 3}
    async with serve(dialects={"enabled": ["rerank"]}) as client:
        results = (await client.post("/v1/rerank", json=body)).json()["results"]

    assert [(1, 10), (4, 10), (3, 40)] == [(each["index"], each["relevance_score"] * 256) for each in results]


@pytest.mark.parametrize(
    ("weights", "direction"),
    [
        ({"darkness": 1}, "lower is better"),
        ({"darkness": -1}, "higher is better"),
        ({"darkness": -1, "brightness": 0.5}, "higher is better"),
        ({"brightness": 1}, "higher is better"),
        ({"brightness": -1}, "higher is better"),
    ],
)
async def test_a_composite_is_lower_is_better_where_all_its_parts_are(serve, weights, direction):
    """A negative weight says that the profile turns a part."""
    reward = {name: {"weight": weight} for name, weight in weights.items()}
    async with serve(composites={"reward": reward}) as client:
        shown = (await client.get("/models")).json()["metrics"]["reward"]["direction"]
        first = (await places(client, metric="reward"))[0][1]

    assert direction == shown
    sums = [sum(weight * value for weight in weights.values()) for value in LEVELS]
    assert (min(sums) if direction.startswith("lower") else max(sums)) == pytest.approx(first)
