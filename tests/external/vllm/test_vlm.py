"""The service with a real vLLM behind it that serves a VLM: a tiny random LLaVA."""

import asyncio
import base64
import io

import PIL.Image
import pytest

from demo.samples import FOLDER
from models.families.decisions import DecisionEndpointSettings
from models.families.vlm_answers import LETTER_INSTRUCTION
from service.metrics.rubrics.options import RUBRICS
from service.process.doctor import WRONG, check_upstream
from tests.external.vllm.services import LISTED, PICTURE, scored, server, service
from tests.support.rubrics import VALUES, question
from tests.support.tiny_llava import label_probabilities

EIGHT = [
    f"a {colour} {shape}" for colour in ("red", "blue") for shape in ("circle", "square", "star", "ring")
]


POLICY = """Does this picture show {violence}, blood or "gore"?
 Your answer must start with 'Yes' or 'No'.
"""


@pytest.fixture(scope="module")
def vlm():
    """The server of the LLaVA."""
    with server("vlm") as found:
        yield found


@pytest.fixture(scope="module")
def llava(vlm):
    """The checkpoint's directory."""
    return vlm.checkpoint


@pytest.fixture(scope="module")
def with_vlm(vlm, tmp_path_factory):
    """A client of a service whose models are a VLM served by vLLM, and that VLM with a policy."""
    served = f"""
        base_url = "{vlm.base_url}"
        model = "m"
        timeout_s = 170
    """
    tables = f"""
        [models.vqa]
        family = "openai_vlm"
        {served}
        [models.safety]
        family = "openai_safety"
        {served}
        policy = '''
{POLICY}'''
    """
    with service(tmp_path_factory.mktemp("with-vlm"), tables) as client:
        yield client


def test_a_vlm_gives_the_probabilities_that_transformers_computes(with_vlm, llava):
    """Of "Yes" and "No" as the first token, to 1e-5 in float32."""
    rgb = PIL.Image.open(io.BytesIO(PICTURE)).convert("RGB")
    for prompt, result in zip(EIGHT, scored(with_vlm, EIGHT, "vqascore"), strict=True):
        yes, no = label_probabilities(
            llava, rgb, f'Does this figure show "{prompt}"? Please answer yes or no.'
        )
        details = result["details"]["vqascore"]

        assert result["scores"]["vqascore"] == pytest.approx(yes, abs=1e-5)
        assert (details["p_yes"], details["p_no"]) == pytest.approx((yes, no), abs=1e-5)
        assert details["label_mass"] == pytest.approx(yes + no, abs=2e-5)


def test_a_vlm_with_a_policy_gives_the_safety_that_transformers_computes(with_vlm, llava):
    """One minus P("Yes") among both words; the policy as it stands in the file, with its last newline."""
    found = []
    for sample in LISTED[:4]:
        picture = (FOLDER / sample["file"]).read_bytes()
        yes, no = label_probabilities(llava, pixels(picture), POLICY)
        [result] = scored(with_vlm, ["a star"], "safety", picture)
        assert "safety" in result["scores"], result
        found.append(result["scores"]["safety"])

        assert found[-1] == pytest.approx(no / (yes + no), abs=1e-4)
        assert result["details"]["safety"]["unsafe"] == pytest.approx([yes / (yes + no)], abs=1e-4)
    assert 0.02 < max(found) - min(found)


SHAPE = {"id": 1, "text": "What is it?", "choices": ["a ring", "a star", "a heart"], "expected": "a star"}


def test_a_vlm_gives_its_choices_the_probabilities_that_transformers_computes(with_vlm, llava):
    """Of the letters as the first token, each among all of them."""
    rgb = PIL.Image.open(io.BytesIO(PICTURE)).convert("RGB")
    asked = "What is it?\nA. a ring\nB. a star\nC. a heart\n" + LETTER_INSTRUCTION
    exact = label_probabilities(llava, rgb, asked, ("A", "B", "C"))
    [result] = scored(with_vlm, ["a star"], "tifa", question_set=[SHAPE])
    [question] = result["details"]["tifa"]["questions"]

    shares = [p / sum(exact) for p in exact]
    assert list(question["probabilities"].values()) == pytest.approx(shares, abs=1e-5)
    assert question["answer"] == SHAPE["choices"][shares.index(max(shares))]


def test_a_vlm_gives_first_tokens_the_probabilities_that_transformers_computes(with_vlm, llava):
    """Of the first letter, small or large: to this model every letter is a token, and so is a space."""
    rgb = PIL.Image.open(io.BytesIO(PICTURE)).convert("RGB")
    exact = label_probabilities(llava, rgb, "What is it? Answer in one word.", ("s", "S"))
    star = {**SHAPE, "choices": [], "expected": "star"}
    [result] = scored(with_vlm, ["a star"], "soft_tifa", question_set=[star])

    assert result["scores"]["soft_tifa"] == pytest.approx(sum(exact), abs=1e-5)


@pytest.mark.parametrize(("template", "labels"), [("semantic_consistency", "1-5"), ("editing", "A-E")])
def test_a_vlm_grades_by_the_probabilities_that_transformers_computes(with_vlm, llava, template, labels):
    """Σ p·value / Σ p of its labels, to 1e-5; the picture before an edit stands before the one after it."""
    captions, values = RUBRICS[template].calls[0].captions, VALUES[labels]
    after, source = pixels(PICTURE), (FOLDER / LISTED[2]["file"]).read_bytes()
    edited = template == "editing"
    before = [captions["source"], pixels(source), captions["candidate"]] if edited else []
    asked = question(template, "a red star", labels)
    exact = label_probabilities(llava, after, asked, (*values,), before)
    beside = {"source": base64.b64encode(source).decode()} if edited else {}
    [result] = scored(with_vlm, ["a red star"], "judge", beside=beside, rubric=template, labels=labels)

    expected = sum(p * value for p, value in zip(exact, values.values(), strict=True)) / sum(exact)
    told = result["details"]["judge"]["outputs"]["grade"]
    assert result["scores"]["judge"] == pytest.approx(expected, abs=1e-5)
    assert told["probabilities"] == pytest.approx(dict(zip(values, exact, strict=True)), abs=1e-5)
    assert told["label_mass"] == pytest.approx(sum(exact), abs=2e-5)


def test_a_vlm_compares_with_three_references_in_their_order(with_vlm, llava):
    """Four pictures in one message; other references are another grade."""
    captions, labels = RUBRICS["anchored_likeness"].calls[0].captions, tuple(VALUES["1-5"])
    files = [(FOLDER / sample["file"]).read_bytes() for sample in LISTED[2:5]]
    introduced = [captions["reference*"].replace("{}", str(n)) for n in (1, 2, 3)]
    pairs = zip(introduced, map(pixels, files), strict=True)
    before = [*(each for pair in pairs for each in pair), captions["candidate"]]
    asked = question("anchored_likeness", "a star", "1-5")
    exact = label_probabilities(llava, pixels(PICTURE), asked, labels, before)
    sent = [base64.b64encode(file).decode() for file in files]
    [result], [turned] = (
        scored(with_vlm, ["a star"], "judge", beside={"references": order}, rubric="anchored_likeness")
        for order in (sent, sent[::-1])
    )

    told, other = (each["details"]["judge"]["outputs"]["grade"]["probabilities"] for each in (result, turned))
    assert told == pytest.approx(dict(zip(labels, exact, strict=True)), abs=1e-5)
    assert told != pytest.approx(other, abs=1e-5)


def pixels(file):
    """A picture file's, in RGB."""
    return PIL.Image.open(io.BytesIO(file)).convert("RGB")


def test_questions_about_one_image_share_its_prefix(with_vlm, vlm):
    """Eight that arrive together: vLLM computes the image's part of the prompt once, and reads it once."""
    picture = (FOLDER / LISTED[0]["file"]).read_bytes()
    names = ("vllm:prefix_cache_hits_total", "vllm:mm_cache_hits_total")
    before = [vlm.counter(name) for name in names]
    results = scored(with_vlm, EIGHT, "vqascore", picture)
    prefix, images = (vlm.counter(name) - old for name, old in zip(names, before, strict=True))

    assert all(result["scores"] for result in results)
    assert prefix >= 128
    assert images >= 7


def test_an_answer_of_several_tokens_is_refused_by_name(with_vlm):
    """The tokenizer that decides is the server's own."""
    image = base64.b64encode(PICTURE).decode()
    body = {"items": [{"prompt": "a", "image": image}], "options": {"vqascore": {"answer": "Yes it does"}}}
    error = with_vlm.post("/score", json=body).json()["results"][0]["errors"]["vqascore"]

    assert "call_refused" == error["code"]
    assert "it must have one" in error["detail"]


def test_a_model_without_decisions_is_found_before_any_call(vlm):
    """vLLM 0.32 has the route for every model, and decisions for a few."""
    table = DecisionEndpointSettings(
        family="decisions", role="vqa", base_url=vlm.base_url, model="m", body="systemone"
    )
    found, _ = asyncio.run(check_upstream("vqa", table))

    assert found.status == WRONG
    assert found.fact.endswith("status 501: The model does not support the structured decision API")


RUBRIC = """
score = "fit / 4 * clear"
read = "both"

[[calls]]
instructions = 'Does the picture show "{prompt}"?'
max_tokens = 128
[calls.outputs.fit]
range = [0, 4]
[calls.outputs.clear]
kind = "yes_no"
"""


@pytest.mark.parametrize("field", ["response_format", "structured_outputs"])
def test_a_written_answer_follows_the_schema_that_is_sent(vlm, tmp_path, field):
    """A model with random weights writes JSON of the form, by either field; the labels are read as well."""
    (tmp_path / "rubrics").mkdir()
    (tmp_path / "rubrics" / "fit.toml").write_text(RUBRIC, "utf-8")
    tables = f"""
        [models.vqa]
        family = "openai_vlm"
        base_url = "{vlm.base_url}"
        model = "m"
        structured_output = "{field}"
        timeout_s = 170
        [judge]
        rubrics = ["{tmp_path}/rubrics"]
    """
    with service(tmp_path, tables) as client:
        [result] = scored(client, ["a star"], "judge", rubric="fit")

    assert "judge" in result["scores"], result
    outputs = result["details"]["judge"]["outputs"]
    assert outputs["fit"]["answers"][0] in range(5)
    assert outputs["clear"]["answers"][0] in ("yes", "no")
    assert {"0", "1", "2", "3", "4"} == outputs["fit"]["probabilities"].keys()
    assert result["scores"]["judge"] == outputs["fit"]["value"] / 4 * outputs["clear"]["value"]
