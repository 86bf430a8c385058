"""The port whose bodies are pickles, asked as each trainer asks."""

import asyncio
import json
import pickle

import numpy as np
import pytest

from service.core.errors import ModelFault
from tests.app.web.dialects.conftest import BROKEN, PICTURES, PROMPTS
from tests.process.web.dialects.trainers import deepgen_body, deqa_bodies, geneval_bodies
from tests.support.fake_objects import Detector, detection
from tests.support.fakes import FakeAesthetic

pytestmark = pytest.mark.anyio

LINES = [
    {
        "tag": "counting",
        "include": [{"class": "dog", "count": 2}],
        "exclude": [{"class": "dog", "count": 3}],
        "prompt": "a photo of two dogs",
    },
    {"tag": "single_object", "include": [{"class": "dog", "count": 1}], "prompt": "a photo of a dog"},
    {
        "tag": "position",
        "include": [{"class": "cat", "count": 1}, {"class": "dog", "count": 1, "position": ["right of", 0]}],
        "prompt": "a photo of a dog right of a cat",
    },
    {
        "tag": "two_object",
        "include": [{"class": "cat", "count": 1}, {"class": "bus", "count": 1}],
        "prompt": "b",
    },
]


def asked(**more):
    return {"images": PICTURES, "prompts": PROMPTS, **more}


@pytest.mark.shared
@pytest.mark.parametrize("protocol", [3, 4, 5])
@pytest.mark.parametrize(
    "more",
    [
        {},
        {"metadata": {}},
        {"metadata": {"seeds": [1, 2]}},
        {"metadata": {"meta_datas": [], "only_strict": False}},
        {"prompts": np.array(PROMPTS)},
        {"prompts": [*np.array(PROMPTS)]},
    ],
)
async def test_each_picture_gets_the_score_that_the_service_gives(dialects, more, protocol):
    """Under the names that flow_grpo, verl-omni and deepgen_rl look for."""
    async with dialects() as apps:
        status, answer = await apps.unpickled(pickle.dumps(asked(**more), protocol))
        expected = [await apps.score(*pair) for pair in zip(PICTURES, PROMPTS, strict=True)]

    assert 200 == status
    assert {"scores": expected, "outputs": expected} == answer
    assert all(type(score) is float for score in answer["scores"])


@pytest.fixture
def seen(fakes):
    """Two dogs and a cat left of them in every picture, and a judge of beauty."""
    fakes["detector"], fakes["aesthetic"] = Detector(), FakeAesthetic()
    fakes["detector"].found = (
        detection("dog", 0.95, (40, 0, 50, 10)),
        detection("dog", 0.94, (42, 0, 52, 10)),
        detection("cat", 0.93, (0, 0, 10, 10)),
    )


BEAUTY = {"metrics": {"aesthetic": {"model": "aesthetic"}}}
GENEVAL = {
    "scores": [1.0, 0.0, 1 / 3, 0.5],
    "rewards": [1.0, 1.0, 1.0, 0.0],
    "strict_rewards": [1.0, 0.0, 0.0, 0.0],
    "group_rewards": {
        "single_object": [-10.0, 1.0, -10.0, -10.0],
        "two_object": [-10.0, -10.0, -10.0, 0.0],
        "counting": [1.0, -10.0, -10.0, -10.0],
        "colors": [-10.0] * 4,
        "position": [-10.0, -10.0, 1.0, -10.0],
        "color_attr": [-10.0] * 4,
    },
    "group_strict_rewards": {
        "single_object": [-10.0, 0.0, -10.0, -10.0],
        "two_object": [-10.0, -10.0, -10.0, 0.0],
        "counting": [1.0, -10.0, -10.0, -10.0],
        "colors": [-10.0] * 4,
        "position": [-10.0, -10.0, 0.0, -10.0],
        "color_attr": [-10.0] * 4,
    },
}


@pytest.mark.usefixtures("seen")
@pytest.mark.parametrize("only_strict", [True, False])
@pytest.mark.parametrize("path", ["/", "/geneval", "/geneval/"])
async def test_metadata_are_scored_as_geneval_with_the_answer_of_reward_servers(dialects, path, only_strict):
    """flow_grpo's `geneval_score` and deepgen_rl's `gen_eval`, at the root as on a path."""
    [flow_grpo] = geneval_bodies(PICTURES, LINES, only_strict)
    deepgen = deepgen_body(PICTURES, PROMPTS, {"meta_datas": LINES, "only_strict": only_strict})
    async with dialects() as apps:
        answers = [await apps.unpickled(body, path) for body in (flow_grpo, deepgen)]

    for status, answer in answers:
        assert 200 == status
        assert pytest.approx(GENEVAL["scores"]) == answer["scores"]
        assert {**GENEVAL, "scores": answer["scores"]} == answer
        assert [*GENEVAL] == [*answer]


@pytest.mark.shared
async def test_scores_are_bytes_as_errors_are(dialects):
    """`application/octet-stream`: no proxy takes them for a text."""
    async with dialects() as apps:
        answer = await apps.pickled.post("/", content=pickle.dumps(asked()))

    assert (200, "application/octet-stream") == (answer.status_code, answer.headers["content-type"])


async def test_more_pictures_than_score_takes_are_worked_on_in_windows(dialects):
    """And the scores are in order."""
    pairs = [(PICTURES[n % 4], f"{PROMPTS[n % 4]} {n}") for n in range(130)]
    body = {"images": [picture for picture, _ in pairs], "prompts": np.array([prompt for _, prompt in pairs])}
    async with dialects() as apps:
        status, answer = await apps.unpickled(body)
        expected = [await apps.score(*pairs[n]) for n in (0, 127, 128, 129)]

    assert (200, 130) == (status, len(answer["scores"]))
    assert expected == [answer["scores"][n] for n in (0, 127, 128, 129)]


@pytest.mark.usefixtures("seen")
async def test_a_path_of_another_metric_is_what_counts_and_not_the_metadata(dialects):
    async with dialects() as apps:
        _, answer = await apps.unpickled(asked(meta_datas=LINES), "/clipscore")
        expected = [await apps.score(*pair, "clipscore") for pair in zip(PICTURES, PROMPTS, strict=True)]

    assert {"scores": expected, "outputs": expected} == answer


@pytest.mark.usefixtures("seen")
async def test_a_line_of_metadata_that_is_none_is_named(dialects):
    lines = [*LINES[:3], {"tag": "counting", "prompt": "two dogs"}]
    async with dialects() as apps:
        status, answer = await apps.unpickled({"images": PICTURES, "meta_datas": lines, "only_strict": True})

    assert 422 == status
    assert "meta_datas/3: has no include" == answer["error"]


@pytest.mark.usefixtures("seen")
@pytest.mark.parametrize("path", ["/", "/aesthetic"])
async def test_pictures_alone_are_scored_by_the_metric_that_needs_no_prompts(dialects, path):
    """flow_grpo's `deqa_score_remote` reads `outputs`."""
    [body] = deqa_bodies(PICTURES)
    async with dialects(**BEAUTY) as apps:
        status, answer = await apps.unpickled(body, path)
        expected = [await apps.score(picture, "a", "aesthetic") for picture in PICTURES]

    assert 200 == status
    assert expected == answer["outputs"]


@pytest.mark.usefixtures("seen")
async def test_pictures_without_prompts_get_no_score_of_a_metric_that_reads_them(dialects):
    """A path that names it is no oversight; and questions are no prompts."""
    async with dialects(**BEAUTY) as apps:
        named = await apps.unpickled({"images": PICTURES}, "/vqascore")
        asked = await apps.unpickled({"images": PICTURES, "queries": [["What is this?"]] * 4})

    for status, answer in (named, asked):
        assert 422 == status
        assert 'no "prompts"' in answer["error"]
        assert "/aesthetic" in answer["error"]


async def test_ddpos_comparison_of_texts_gets_the_score_of_its_prompts(dialects):
    """Its client takes `recall` as the reward."""
    body = {
        "images": PICTURES,
        "queries": [["Answer concisely: what is going on in this image?"]] * 4,
        "answers": [[f"The image contains {prompt}"] for prompt in PROMPTS],
    }
    async with dialects() as apps:
        _, answer = await apps.unpickled(body)
        expected = [await apps.score(*pair) for pair in zip(PICTURES, PROMPTS, strict=True)]

    assert expected == np.array(answer["recall"]).squeeze().tolist()
    assert {"scores", "outputs", "recall", "precision", "f1"} == answer.keys()


@pytest.mark.shared
@pytest.mark.parametrize("path", ["/clipscore", "/clipscore/"])
async def test_a_path_names_another_metric(dialects, path):
    """deepgen_rl puts a slash behind the addresses of its rewards."""
    async with dialects() as apps:
        status, answer = await apps.unpickled(asked(), path)
        expected = await apps.score(PICTURES[1], PROMPTS[1], "clipscore")

    assert 200 == status
    assert expected == answer["scores"][1]


async def test_the_settings_name_the_metric_and_its_options(dialects):
    """Log-odds, say: scores near 1 are all alike."""
    options = {"vqascore": {"output": "logit"}}
    async with dialects({"metric": "vqascore", "options": options}) as apps:
        _, answer = await apps.unpickled(asked())
        body = {"items": [{"prompt": PROMPTS[0], "image": {"part": "a"}}], "options": options}
        said = await apps.main.post("/score", data={"request": json.dumps(body)}, files={"a": PICTURES[0]})

    assert said.json()["results"][0]["scores"]["vqascore"] == answer["scores"][0]


async def test_a_broken_picture_is_named_and_gets_no_number(dialects):
    """The format has no place for errors of single pictures, so the request has none of the scores."""
    async with dialects() as apps:
        status, answer = await apps.unpickled(asked(images=[*PICTURES[:2], BROKEN, PICTURES[3]]))

    assert 422 == status
    assert answer["error"].startswith("images/2: ")


async def test_one_broken_picture_among_128_harms_no_other_request(dialects):
    """verl-omni sends each picture by itself."""
    pictures = [BROKEN if number == 77 else PICTURES[number % 4] for number in range(128)]
    async with dialects() as apps:
        bodies = [{"images": [each], "prompts": ["a square"], "metadata": {}} for each in pictures]
        answers = await asyncio.gather(*(apps.unpickled(body) for body in bodies))

    assert [77] == [number for number, (status, _) in enumerate(answers) if status != 200]
    assert all(len(answer["scores"]) == 1 for status, answer in answers if status == 200)


async def test_a_fault_of_a_model_is_an_error_and_no_number(dialects, fakes):
    async with dialects() as apps:
        vqa, example = fakes["vqa"], fakes["vqa"].example()  # which works, or the device would be broken
        vqa.fault = lambda call: None if call == example else ModelFault("broken")
        status, answer = await apps.unpickled(asked())

    assert 500 == status
    assert "error" in answer
    assert "scores" not in answer


async def test_requests_are_bulk_and_counted_as_pickles(dialects, fakes):
    """Their series exist from the start."""
    async with dialects() as apps:
        before = (await apps.main.get("/metrics")).text
        await apps.unpickled(asked())
        await apps.unpickled({"images": []})
        said = (await apps.main.get("/metrics")).text

    assert 'scoregate_requests_total{code="200",route="pickle"} 0.0' in before
    assert 'scoregate_request_duration_seconds_count{lane="bulk",route="pickle"} 0.0' in before
    assert 'scoregate_requests_total{code="200",route="pickle"} 1.0' in said
    assert 'scoregate_requests_total{code="422",route="pickle"} 1.0' in said
    assert 'scoregate_calls_total{lane="bulk",model="vqa",result="ok"} 4.0' in said
