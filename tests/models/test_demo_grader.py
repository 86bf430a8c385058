"""The grader of the demo world: grades and preferences by the demo VQA model's yes or no."""

import json
from math import comb, exp

import PIL.Image
import pytest

from models.checkpoints.locate import DEMO
from models.core.calls import AnswerCall, LabelCall, LikelihoodCall
from models.core.contract import ModelError
from models.families.clip_flant5.model import ClipFlanT5
from models.families.demo_grader.model import DemoGrader, quoted
from models.images.image import Image
from service.wiring.load import load_settings
from tests.support.app import serve
from tests.support.paths import ROOT
from tests.support.pictures import b64, item
from tests.support.questions import scored
from tests.support.rubrics import question

SAMPLES = ROOT / "demo" / "samples"
PROMPTS = json.loads((SAMPLES / "prompts.json").read_text())
STARS = "three yellow stars"
GRADE = {"type": "integer", "enum": [1, 2, 3, 4, 5]}
TEXT = {"type": "string"}

__all__ = ["serve"]


@pytest.fixture(scope="module")
def vqa():
    return ClipFlanT5(DEMO / "clip_flant5", dtype="float32", device="cpu")


@pytest.fixture(scope="module")
def grader(vqa):
    return DemoGrader(vqa)


@pytest.fixture(scope="module")
def count():
    return Image.of(PIL.Image.open(SAMPLES / "count.png"))


def answered(model, call):
    [outcome] = model.score([model.prepare(call)])
    return outcome


def graded(grader, image, labels, prompt=STARS):
    """The probability of each label."""
    call = LabelCall(image, question("semantic_consistency", prompt, "1-5"), labels)
    return [exp(log) for (log,) in answered(grader, call).log_probs]


def schema(**forms):
    return {"type": "object", "properties": forms}


@pytest.mark.anyio
async def test_right_prompts_have_better_grades_than_wrong_ones_on_all_demo_images(serve, fakes, grader):
    """By the whole service, with both kinds of labels."""
    fakes["vqa"] = grader
    async with serve() as client:
        for labels in ("1-5", "A-E"):
            for each in PROMPTS:
                file = b64((SAMPLES / each["file"]).read_bytes())
                right, wrong = [
                    (await scored(client, "judge", item(each[side], file), labels=labels))["scores"]["judge"]
                    for side in ("right", "wrong")
                ]
                assert right > 4.5, each
                assert wrong < 1.5, each


@pytest.mark.anyio
async def test_of_two_images_the_one_that_shows_the_prompt_wins_in_both_orders(serve, fakes, grader):
    """By the rubric `preference`; two images without it are a tie."""
    fakes["vqa"] = grader
    files = [b64((SAMPLES / name).read_bytes()) for name in ("binding.png", "count.png", "negation.png")]
    body = {"prompt": STARS, "images": files, "rubric": "preference"}
    async with serve() as client:
        pairs = (await client.post("/compare", json=body)).json()["pairs"]

    winners = {(pair["a"], pair["b"]): pair["winner"] for pair in pairs}
    assert {(0, 1): "b", (0, 2): "tie", (1, 2): "a"} == winners
    assert all(pair["orders_agree"] for pair in pairs)


def test_grades_are_binomial_in_the_probability_of_yes(grader, vqa, count):
    """Their mean is as far from the worst grade as p is from 0; of A to E the first is the best."""
    asked = LikelihoodCall(count, vqa.info.question.replace("{}", "four yellow stars"))
    p = answered(vqa, asked).probability
    expected = [comb(4, k) * p**k * (1 - p) ** (4 - k) for k in range(5)]

    assert graded(grader, count, tuple("12345"), "four yellow stars") == pytest.approx(expected)
    assert graded(grader, count, tuple("ABCDE"), "four yellow stars") == pytest.approx(expected[::-1])
    assert graded(grader, count, ("Yes", "No"), "four yellow stars") == pytest.approx([p, 1 - p])


def test_a_written_answer_has_one_grade_and_says_the_probability(grader, count):
    """In JSON, as rubrics of one grade with a reason have it."""
    call = AnswerCall(count, f'Grade "{STARS}".\n"why": a text', schema=schema(why=TEXT, grade=GRADE))

    assert {"why": "yes: it is shown with the probability 0.99", "grade": 5} == json.loads(
        answered(grader, call).text
    )


@pytest.mark.parametrize(
    "call",
    [
        lambda image: LabelCall(image, "How beautiful is it?", tuple("12345")),
        lambda image: LabelCall(image, 'Is it "a red circle" or "a blue ring"?', tuple("12345")),
        lambda image: LabelCall(image, f'How much of "{STARS}"?', ("good", "bad")),
        lambda image: LabelCall(image, f'Was the edit "{STARS}" done?', tuple("12345"), (image,)),
        lambda image: LabelCall(
            image, f'Which shows "{STARS}"?\nA: picture 1\nB: picture 2', ("A", "B"), (image,)
        ),
        lambda image: AnswerCall(image, f'Grade "{STARS}".', schema=schema(one=GRADE, other=GRADE)),
        lambda image: AnswerCall(image, f'Grade "{STARS}".', schema=schema(why=TEXT)),
        lambda image: AnswerCall(image, f'Grade "{STARS}".'),
        lambda image: LikelihoodCall(image, f'Is it "{STARS}"?'),
    ],
    ids=lambda call: "",
)
def test_a_question_about_anything_else_is_an_error(grader, count, call):
    """No grade is made up: of beauty, of an edit, of several texts or outputs."""
    with pytest.raises(ModelError, match="the demo grader"):
        grader.prepare(call(count))


def test_the_quoted_text_is_no_key_of_a_json_form():
    """Which stands in quotes, too, with a colon behind it."""
    assert STARS == quoted(f'Grade this:\n"{STARS}"\n"grade": an integer from 1 to 5')


def test_the_demo_profile_judges_by_a_model_of_its_own():
    """And all other metrics ask the VQA model."""
    settings = load_settings(ROOT / "deploy/profiles/demo.toml", {})

    assert {"judge": {"vqa": "judge"}} == settings.metrics
    assert settings.models["judge"].is_demo
