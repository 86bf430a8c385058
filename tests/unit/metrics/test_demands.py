"""What metrics ask of the models that they need, told before they are asked."""

import pytest

from service.metrics.common.registry import own
from service.questions.request_sets import YesNoQuestion
from service.serving.admission import Demand

PROMPT = "a dog and a cat"


def demand(name, **options):
    metric = own()[name]
    return metric.demand(PROMPT, metric.options(**options))


def test_vqascore_asks_one_call_with_a_question_and_an_answer():
    """Both may be long, and hold the prompt."""
    assert {"vqa": Demand(1, len(PROMPT) + len("Yes"))} == demand("vqascore")
    long = demand("vqascore", question="Is it so? " * 10 + "{}", answer="It shows {}")
    assert {"vqa": Demand(1, 100 + len("It shows ") + 2 * len(PROMPT))} == long


@pytest.mark.parametrize("name", ["clipscore", "pickscore", "hpsv2"])
def test_metrics_of_one_cosine_ask_for_an_image_and_a_text(name):
    """Two calls, of which one has characters."""
    assert {"clip": Demand(2, len(PROMPT))} == demand(name)


def test_clip_i_asks_for_two_images_whatever_the_prompt_is():
    """An item has one reference at least; the prompt is not sent to the model."""
    assert {"clip": Demand(2)} == demand("clip_i")


@pytest.mark.parametrize("name", ["aesthetic", "artifact", "safety"])
def test_a_model_of_the_image_alone_gets_no_text(name):
    """The prompt is not sent to it."""
    assert {name: Demand(1)} == demand(name)


def test_refclipscore_asks_for_an_image_and_each_text_with_its_prefix():
    """The prompt and two others."""
    prefix = len("A photo depicts ")
    expected = {"clip": Demand(4, 3 * prefix + len(PROMPT) + len("a doga cat"))}
    assert expected == demand("refclipscore", reference_texts=["a dog", "a cat"])


def test_dsg_asks_as_many_questions_as_were_sent_along_or_as_a_set_usually_has():
    """The question LLM is not among the models that it needs in any case."""
    template = len("{} Please answer yes or no.")
    assert {"vqa": Demand(8, 8 * template)} == demand("dsg")
    given = [YesNoQuestion(id=n, text=f"Is it {n:03}?") for n in range(1, 65)]
    assert {"vqa": Demand(64, 64 * (10 + template))} == demand("dsg", question_set=given)


@pytest.mark.parametrize(
    ("name", "template"),
    [
        ("tifa", "{} Answer the question using a single word or phrase."),
        ("soft_tifa", "{} Answer in one word."),
        ("vq2", 'is "{answer}" true for "{question}" in this image?'),
    ],
)
def test_metrics_of_expected_answers_ask_a_call_for_each_question(name, template):
    """However many choices or variants it has."""
    assert {"vqa": Demand(8, 8 * len(template))} == demand(name)
    one = {"choices": ["a", "b"], "expected": "a"}
    given = [{"id": n, "text": f"Is it {n:03}?", **one} for n in range(1, 65)]
    assert {"vqa": Demand(64, 64 * (10 + len(template)))} == demand(name, question_set=given)


def test_ocr_reads_the_image_once_whatever_the_text_is():
    """The text is not sent to the model."""
    assert {"ocr": Demand(1)} == demand("ocr", text="OPEN")


def test_a_metric_that_declares_nothing_asks_one_call_of_each_role():
    """As metrics of other packages may."""
    metric = own()["vqascore"]
    plain = type(metric)("plain", metric.score, roles=("vqa", "clip"), may_use=("questions",))

    expected = {"vqa": Demand(1, len(PROMPT)), "clip": Demand(1, len(PROMPT))}
    assert expected == plain.demand(PROMPT, plain.options())
