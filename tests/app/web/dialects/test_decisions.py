"""Decision endpoints in the bodies of OpenAI, SGLang and vLLM."""

from math import exp, isclose

import pytest

from models.core.calls import ChoiceCall, LabelCall, LikelihoodCall
from models.core.contract import CHOICE_QUESTION
from models.families.fake.model import answer
from models.images.image import Image
from tests.app.web.dialects.conftest import BROKEN, PICTURES
from tests.support.pictures import b64

pytestmark = pytest.mark.anyio

URI = f"data:image/png;base64,{b64(PICTURES[0])}"
IMAGE = {"type": "input_image", "image_url": URI}
LEVELS = ["poor", "fair", "good"]
COLOURS = ["red", "blue"]


def openai(*questions, image=IMAGE, **more):
    content = [{"type": "input_text", "text": "A picture."}, image]
    return {"input": [{"role": "user", "content": content}], "questions": [*questions], **more}


PREDICATE = {"type": "predicate", "name": "red", "instructions": "It is red."}
CHOICE = {"type": "choice", "instructions": "Which colour?", "choices": [{"value": each} for each in COLOURS]}
SCORE = {"type": "score", "instructions": "How good?", "levels": [{"label": each} for each in LEVELS]}
SGLANG = {
    "input": "A picture.",
    "images": [{"url": URI}],
    "questions": [
        {"id": "red", "type": "yes_no", "question": "It is red."},
        {
            "id": "colour",
            "type": "choice",
            "question": "Which colour?",
            "options": [{"name": each} for each in COLOURS],
        },
        {"id": "quality", "type": "score", "question": "How good?", "levels": LEVELS},
    ],
}
SYSTEM_ONE = {
    "state": "A picture.",
    "images": [URI],
    "questions": {
        "red": {"type": "noul", "instructions": "It is red."},
        "colour": {
            "type": "choice",
            "instructions": "Which colour?",
            "criteria": dict.fromkeys(COLOURS),
        },
        "quality": {"type": "score", "instructions": "How good?", "criteria": LEVELS},
    },
}


def expected():
    """The fake's own outcomes of the three questions."""
    image = Image(PICTURES[0])
    lines = "\n".join(f"{letter}. {level}" for letter, level in zip("ABC", LEVELS, strict=True))
    calls = [
        LikelihoodCall(image, "A picture.\n\nIs the following true? It is red. Please answer yes or no."),
        ChoiceCall(image, CHOICE_QUESTION.replace("{}", "A picture.\n\nWhich colour?"), tuple(COLOURS)),
        LabelCall(
            image,
            f"A picture.\n\nHow good?\n{lines}\nAnswer with the letter of one level only.",
            ("A", "B", "C"),
        ),
    ]
    return [answer(call) for call in calls]


def shares(choices):
    weights = [exp(sum(tokens)) for tokens in choices.log_probs]
    return [weight / sum(weights) for weight in weights], sum(weights)


def close(left, right):
    return all(isclose(*pair, rel_tol=1e-9) for pair in zip(left, right, strict=True))


@pytest.mark.shared
async def test_openais_body_is_answered_with_the_models_probabilities(dialects):
    async with dialects() as apps:
        response = await apps.private.post("/v1/decisions", json=openai(PREDICATE, CHOICE, SCORE))
    assert 200 == response.status_code, response.text
    predicate, choice, score = response.json()["answers"]
    likelihood, colours, levels = expected()

    assert ("predicate", "red") == (predicate["type"], predicate["name"])
    assert isclose(likelihood.probability, predicate["probability"], rel_tol=1e-9)
    of_colours, _ = shares(colours)
    assert close(of_colours, [each["probability"] for each in choice["probabilities"]])
    assert choice["choice"] == COLOURS[of_colours.index(max(of_colours))]
    of_levels, _ = shares(levels)
    assert LEVELS == [each["label"] for each in score["probabilities"]]
    assert isclose(of_levels[1] + 2 * of_levels[2], score["score"], rel_tol=1e-9)
    assert "fake-vqa@1" == response.json()["model"]


@pytest.mark.shared
async def test_all_three_bodies_have_equal_probabilities(dialects):
    async with dialects() as apps:
        first = (await apps.main.post("/v1/decisions", json=openai(PREDICATE, CHOICE, SCORE))).json()
        second = (await apps.main.post("/v1/decisions", json=SGLANG)).json()["answers"]
        third = (await apps.main.post("/v1/systemone", json=SYSTEM_ONE)).json()
    predicate, choice, score = first["answers"]
    likelihood, _, levels = expected()

    assert (
        predicate["probability"] == second["red"]["probabilities"]["yes"] == third["answers"]["red"]["noul"]
    )
    assert choice["choice"] == second["colour"]["choice"] == third["answers"]["colour"]["choice"]
    assert score["score"] == second["quality"]["score"] == third["answers"]["quality"]["score"]
    assert isclose(likelihood.label_mass, second["red"]["label_mass"], rel_tol=1e-9)
    _, mass = shares(levels)
    assert isclose(mass, third["diagnostics"]["quality"]["label_mass"], rel_tol=1e-9)
    assert {"label_mass", "argmax_is_label"} == third["diagnostics"]["quality"].keys()
    assert isclose(mass, third["answers"]["quality"]["x_label_mass"], rel_tol=1e-9)
    assert {"0": "poor", "1": "fair", "2": "good"} == third["answers"]["quality"]["legend"]


@pytest.mark.shared
async def test_sglangs_answer_says_that_its_prompt_format_was_not_used(dialects):
    """Its formats count from 1."""
    async with dialects() as apps:
        response = await apps.main.post("/v1/decisions", json=SGLANG)

    assert 0 == response.json()["prompt_format_version"]


@pytest.mark.shared
async def test_sglangs_form_of_pictures_and_a_single_option_are_read(dialects):
    """The only option has all of the probability, and a mass."""
    alone = {"type": "choice", "instructions": "Which colour?", "criteria": {"red": None}}
    questions = {**SYSTEM_ONE["questions"], "alone": alone}
    body = {**SYSTEM_ONE, "images": [{"url": URI}], "questions": questions}
    async with dialects() as apps:
        expected = (await apps.main.post("/v1/systemone", json=SYSTEM_ONE)).json()["answers"]
        found = (await apps.main.post("/v1/systemone", json=body)).json()["answers"]

    single = found.pop("alone")
    assert expected == found
    assert ("red", {"red": 1.0}) == (single["choice"], single["probabilities"])
    assert 0 < single["x_label_mass"] < 1


@pytest.mark.shared
@pytest.mark.parametrize(
    ("path", "body", "place"),
    [
        ("decisions", openai({**SCORE, "levels": []}), "/questions/0/levels"),
        ("decisions", openai({**PREDICATE, "type": "box"}), "/questions/0"),
        ("decisions", openai({**PREDICATE, "instructions": ""}), "/questions/0/instructions"),
        ("decisions", openai(*[PREDICATE] * 401), "/questions"),
        ("decisions", openai(PREDICATE, image={"type": "input_file"}), "/input/0/content/1"),
        ("decisions", openai(PREDICATE, model="gpt-6-luna"), "/model"),
        ("decisions", {**SGLANG, "images": [{"url": URI}] * 2}, "/images/1/url"),
        ("systemone", {**SYSTEM_ONE, "images": [5]}, "/images/0"),
        (
            "decisions",
            {**SGLANG, "questions": [{"id": "a", "type": "choice", "question": "b"}]},
            "/questions/0/options",
        ),
        (
            "systemone",
            {**SYSTEM_ONE, "questions": {"a": {"type": "score", "criteria": ["b"]}}},
            "/questions/a/criteria",
        ),
        (
            "systemone",
            {**SYSTEM_ONE, "questions": {"a": {"type": "noul", "instructions": "b", "criterion": {}}}},
            "/questions/a/criterion",
        ),
        (
            "systemone",
            {**SYSTEM_ONE, "questions": {"": {"type": "noul", "instructions": "b"}}},
            "/questions/",
        ),
        ("systemone", {**SYSTEM_ONE, "questions": {str(number): 0 for number in range(65)}}, "/questions"),
        (
            "systemone",
            {**SYSTEM_ONE, "questions": {"a": {"type": "noul", **{f"f{number}": 0 for number in range(40)}}}},
            "/questions/a",
        ),
        ("systemone", {**SYSTEM_ONE, "videos": [URI]}, "/videos"),
        ("systemone", {**SYSTEM_ONE, "images": [{"url": URI}] * 2}, "/images/1/url"),
    ],
)
async def test_an_error_names_the_field(dialects, path, body, place):
    async with dialects() as apps:
        response = await apps.private.post(f"/v1/{path}", json=body)

    assert (404 if place == "/model" else 400) == response.status_code
    error = response.json()["error"]
    assert place == error["param"]
    assert error["message"].startswith(place)


@pytest.mark.shared
async def test_a_broken_picture_and_a_url_are_errors_and_no_probabilities(dialects):
    async with dialects() as apps:
        for address in (b64(BROKEN), "https://example.org/a.png"):
            body = openai(PREDICATE, image={**IMAGE, "image_url": address})
            response = await apps.private.post("/v1/decisions", json=body)
            assert 400 == response.status_code
            assert "answers" not in response.json()
            assert response.json()["error"]["message"]


@pytest.mark.shared
async def test_a_temperature_that_would_change_probabilities_is_refused(dialects):
    async with dialects() as apps:
        response = await apps.private.post("/v1/decisions", json={**SGLANG, "temperature": 0.5})

    assert 400 == response.status_code
    assert "temperature" in response.json()["message"]


@pytest.mark.shared
@pytest.mark.parametrize("path", ["decisions", "systemone"])
@pytest.mark.parametrize(
    "body",
    [
        [],
        {"questions": 5},
        {"questions": [5], "input": 5},
        {"images": 5, "questions": [{"id": 5, "type": []}]},
        openai(PREDICATE, image=5),
        openai({**PREDICATE, "instructions": "a\0"}),
        openai({**PREDICATE, "instructions": "a" * 16_001}),
        openai({**CHOICE, "choices": [{"value": True}, {"value": "true"}]}),
    ],
)
async def test_a_body_of_no_form_is_the_callers_fault(dialects, path, body):
    async with dialects() as apps:
        response = await apps.private.post(f"/v1/{path}", json=body)

    assert 400 == response.status_code
    assert "invalid_request_error" == response.json()["error"]["type"]


OTHER = {"type": "input_image", "image_url": f"data:image/png;base64,{b64(PICTURES[1])}"}


def with_picture(question, *pictures):
    text = {"type": "input_text", "text": question["instructions"]}
    return {**question, "instructions": [text, *pictures]}


@pytest.mark.shared
async def test_a_question_may_have_pictures_of_its_own(dialects, fakes):
    """After the input's, which questions without one are about alone; labels stand for all options."""
    asked = [with_picture(each, OTHER) for each in (PREDICATE, CHOICE, SCORE)]
    async with dialects() as apps:
        response = await apps.private.post("/v1/decisions", json=openai(*asked, PREDICATE))

    assert 200 == response.status_code, response.text
    predicate, choice, score, alone = response.json()["answers"]
    first, second = (Image(each) for each in PICTURES[:2])
    colours = "A. red\nB. blue\nAnswer with the letter of one choice only."
    statement = "A picture.\n\nIs the following true? It is red. Please answer yes or no."
    calls = [
        LabelCall(second, statement, ("Yes", "No"), (first,)),
        LabelCall(second, f"A picture.\n\nWhich colour?\n{colours}", ("A", "B"), (first,)),
    ]
    of_predicate, of_colours = (shares(answer(call))[0] for call in calls)
    assert isclose(of_predicate[0], predicate["probability"], rel_tol=1e-9)
    assert close(of_colours, [each["probability"] for each in choice["probabilities"]])
    assert LEVELS == [each["label"] for each in score["probabilities"]]
    assert isclose(expected()[0].probability, alone["probability"], rel_tol=1e-9)
    assert [1, 2, 2, 2] == sorted(len(call.images) for call in fakes["vqa"].calls)


@pytest.mark.shared
async def test_without_a_picture_in_the_input_each_question_needs_one(dialects):
    """It is then the only picture of the question."""
    body = {"input": "A picture.", "questions": [with_picture(PREDICATE, IMAGE)]}
    async with dialects() as apps:
        found = (await apps.private.post("/v1/decisions", json=body)).json()["answers"]
        body["questions"].append(PREDICATE)
        refused = await apps.private.post("/v1/decisions", json=body)

    assert isclose(expected()[0].probability, found[0]["probability"], rel_tol=1e-9)
    assert 400 == refused.status_code
    assert "has 0 pictures" in refused.json()["error"]["message"]


MANY = [{"value": str(number)} for number in range(27)]
BROKEN_PART = {"type": "input_image", "image_url": f"data:image/png;base64,{b64(BROKEN)}"}


@pytest.mark.shared
@pytest.mark.parametrize(
    ("question", "place", "said"),
    [
        (with_picture(PREDICATE, *[OTHER] * 4), "/questions/0", "4 pictures of its own; at most 3"),
        (with_picture({**CHOICE, "choices": MANY}, OTHER), "/questions/0", "27 choices"),
        (with_picture(PREDICATE, BROKEN_PART), "/questions/0", "/questions/0"),
        ({**PREDICATE, "instructions": [OTHER]}, "/questions/0/instructions", "is empty"),
    ],
)
async def test_a_wrong_picture_of_a_question_is_an_error_with_its_place(dialects, question, place, said):
    async with dialects() as apps:
        response = await apps.private.post("/v1/decisions", json=openai(question))

    error = response.json()["error"]
    assert (400, place) == (response.status_code, error["param"])
    assert said in error["message"]


@pytest.mark.shared
async def test_questions_have_at_most_sixty_four_different_pictures(dialects):
    """Equal ones are opened once."""
    pictures = [
        {"type": "input_image", "image_url": f"data:image/png;base64,{b64(PICTURES[0])}{' ' * n}"}
        for n in range(66)
    ]
    asked = [with_picture(PREDICATE, picture) for picture in pictures]
    async with dialects() as apps:
        response = await apps.private.post("/v1/decisions", json=openai(*asked))
        same = await apps.private.post("/v1/decisions", json=openai(*[with_picture(PREDICATE, OTHER)] * 66))

    assert "more than 64 different pictures" in response.json()["error"]["message"]
    assert 200 == same.status_code
