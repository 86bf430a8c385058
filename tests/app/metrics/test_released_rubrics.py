"""Rubrics of released reward models in requests: frames of a film in one call, edits, and pairs."""

import json

import pytest

from models.core.calls import AnswerCall
from models.core.outcomes import Text
from tests.support.pictures import b64, item, pixels, png
from tests.support.questions import scored
from tests.support.released_prompts import copied

pytestmark = pytest.mark.anyio
GRADES = "<think>A dog.</think>\n(1) visual quality: 4\n(2) text-to-video alignment: 5\n"
FILM = f"{GRADES}(3) physical/common-sense consistency: 3"


@pytest.fixture
def prompts(tmp_path):
    """The setting of a folder with instructions of our own."""
    return {"prompts": str(copied(tmp_path))}


@pytest.fixture
def writes(fakes):
    """Has the model write what a function returns about a call."""

    def write(about):
        model = fakes["vqa"]

        def answer(call):
            return Text(about(call)) if isinstance(call, AnswerCall) else type(model).answer(model, call)

        model.answer = answer

    return write


def grey(image):
    """The grey value of a plain picture."""
    return pixels(image).convert("L").getpixel((0, 0))


async def test_the_frames_of_a_film_are_one_call_of_videoscore2(serve, fakes, writes, prompts):
    """In order, and each grade is a metric of its own from the same answer."""
    writes(lambda call: FILM)
    clip = item("a dog", [b64(png(colour)) for colour in ("red", "lime", "blue", "black")])
    metrics = ["judge", "judge.physics"]
    options = {name: {"rubric": "videoscore2", "samples": 3} for name in metrics}
    async with serve(judge=prompts) as client:
        body = {"items": [clip], "metrics": metrics, "options": options}
        [result] = (await client.post("/score", json=body)).json()["results"]

    assert {"judge": 4, "judge.physics": 3} == result["scores"]
    [call] = [call for call in fakes["vqa"].calls if isinstance(call, AnswerCall)]
    shown = [pixels(image).getpixel((0, 0)) for image in (*call.before, call.image)]
    assert [(255, 0, 0), (0, 0, 255), (0, 0, 0)] == shown
    assert "Grade it as videoscore2.txt says. The text is [a dog]." == call.question


async def test_one_picture_is_a_film_of_one_frame(serve, fakes, writes, prompts):
    writes(lambda call: FILM)
    async with serve(judge=prompts) as client:
        result = await scored(client, "judge", item("a dog"), rubric="videoscore2")

    assert 4 == result["scores"]["judge"]
    assert [1] == [len(call.images) for call in fakes["vqa"].calls if isinstance(call, AnswerCall)]


async def test_editscore_grades_the_edit_and_the_picture_alone_to_ten(serve, fakes, writes, prompts):
    """√(the lesser of each list) over 2.5, as the released code; a list of another length is refused."""
    lists = {2: [20, 10], 1: [22.5, 25]}
    writes(lambda call: json.dumps({"reasoning": "x", "score": lists[len(call.images)]}))
    edit = item("make it red", source=b64(png("white")))
    async with serve(judge=prompts) as client:
        result = await scored(client, "judge", edit, rubric="editscore")
        lists[1] = [22.5]
        refused = await scored(
            client, "judge", item("x", b64(png("lime")), source=b64(png("blue"))), rubric="editscore"
        )

    assert (10 * 22.5) ** 0.5 / 2.5 == pytest.approx(result["scores"]["judge"])
    assert "score: the list has 1 numbers, not 2" in refused["errors"]["judge"]["detail"]
    schema = next(call.schema for call in fakes["vqa"].calls if isinstance(call, AnswerCall))
    number = {"type": "number", "minimum": 0, "maximum": 25}
    assert {"type": "array", "items": number, "minItems": 2, "maxItems": 2} == schema["properties"]["score"]


ANSWERS = {
    "unifiedreward_pair": ("A dog.\nImage {} is better.",),
    "unifiedreward_think": ("<think>A dog.</think><answer>Image {} is better</answer>",),
    "unifiedreward_2_pair": (
        "{0} Score:\n Image 1: 0.49\n Image 2: 0.51",
        "{0} Score:\n Image 1: 0.51\n Image 2: 0.49",
    ),
}


@pytest.mark.parametrize("rubric", ANSWERS)
async def test_a_pair_is_judged_in_both_orders_by_the_number_of_the_better_image(
    serve, fakes, writes, prompts, rubric
):
    """The brighter picture wins wherever it stands; a model that always prefers one place decides nothing."""

    def written(better):
        if rubric == "unifiedreward_2_pair":
            text = ANSWERS[rubric][2 - better]
            return "\n".join(text.format(kind) for kind in ("Alignment", "Coherence", "Style"))
        return ANSWERS[rubric][0].format(better)

    def brighter(call):
        [first], second = [each for each in call.before if not isinstance(each, str)], call.image
        return written(1 if grey(first) > grey(second) else 2)

    body = {"prompt": "a dog", "images": [b64(png("black")), b64(png("white"))], "rubric": rubric}
    async with serve(judge=prompts) as client:
        writes(brighter)
        [pair] = (await client.post("/compare", json=body)).json()["pairs"]
        writes(lambda call: written(1))
        [other] = (await client.post("/compare", json={**body, "prompt": "a cat"})).json()["pairs"]

    assert ("b", True) == (pair["winner"], pair["orders_agree"])
    assert ("tie", False) == (other["winner"], other["orders_agree"])


async def test_a_rubric_without_its_instructions_says_where_they_are_expected(serve, tmp_path):
    """The others are served as before, and a pair's shares are no metrics."""
    (tmp_path / "unifiedreward_2_pair.txt").write_text("{prompt}", "utf-8")
    async with serve(judge={"prompts": str(tmp_path)}) as client:
        body = {"items": [item("x")], "metrics": ["judge"], "options": {"judge": {"rubric": "videoscore2"}}}
        answer = await client.post("/score", json=body)
        metrics = (await client.get("/models")).json()["metrics"]

    assert 422 == answer.status_code
    path = tmp_path / "videoscore2.txt"
    assert f"videoscore2 is not served: its instructions are expected in {path}" in answer.text
    assert ["judge"] == [name for name in metrics if name.startswith("judge")]


async def test_a_rubric_of_films_is_no_part_beside_a_metric_of_frames(serve, prompts):
    """As any metric that gets all frames together."""
    parts = {"judge": {"weight": 1, "rubric": "videoscore2"}, "vqascore": {"weight": 1}}

    with pytest.raises(Exception, match="some parts score each frame, and others all frames together"):
        async with serve(judge=prompts, composites={"both": parts}):
            pass
