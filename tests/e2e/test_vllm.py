"""
The service with real vLLM servers behind it: the shipped question LLM, and a tiny random LLaVA.

Both servers run for all tests of this file; whoever needs them first waits a minute.
"""

import base64
import io
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import httpx
import PIL.Image
import pytest

from demo.process import SERVICE, free_port, running, url, wait_until_ready
from demo.samples import FOLDER, listed
from models.checkpoints.locate import DEMO
from models.openai.answers import BY_LETTER
from models.question_llm.model import QuestionLLM
from service.metrics.rubrics.rubric import RUBRICS, VALUES
from service.questions.sets import QuestionSet
from service.questions.styles.dsg import DSG as STYLE
from tests.support.tiny_llava import label_probabilities, make_llava
from tests.support.vllm_server import vllm

pytestmark = pytest.mark.integration

LISTED = listed()
PICTURE = (FOLDER / LISTED[1]["file"]).read_bytes()
EIGHT = [
    f"a {colour} {shape}" for colour in ("red", "blue") for shape in ("circle", "square", "star", "ring")
]


@pytest.fixture(scope="module")
def llava(tmp_path_factory):
    """The checkpoint's directory."""
    directory = tmp_path_factory.mktemp("llava")
    make_llava(directory)
    return directory


@pytest.fixture(scope="module")
def servers(llava, tmp_path_factory):
    """The servers of the question LLM and of the VLM, started side by side."""
    logs = tmp_path_factory.mktemp("vllm")
    with (
        vllm(DEMO / "question_llm", free_port(0), logs / "llm") as llm,
        vllm(llava, free_port(0), logs / "vlm") as vlm,
    ):
        llm.wait()
        vlm.wait()
        yield {"llm": llm, "vlm": vlm}


def profile(directory: Path, **models: str) -> tuple[str, ...]:
    """The command of a service with those models, each given as the lines of its table."""
    tables = [f"[models.{name}]\n{lines}" for name, lines in models.items()]
    tables.append(f'[cache]\nquestions = "sqlite:///{directory}/questions.sqlite3"\n')
    path = directory / "profile.toml"
    path.write_text("\n".join(tables))
    return (*SERVICE, "--config", str(path))


@pytest.fixture(scope="module")
def with_llm(servers, tmp_path_factory):
    """A client of the demo service, whose question LLM is served by vLLM."""
    directory, port = tmp_path_factory.mktemp("with-llm"), free_port(0)
    command = profile(
        directory,
        clip='family = "open_clip"\ncheckpoint = "demo:clip"',
        vqa='family = "clip_flant5"\ncheckpoint = "demo:clip_flant5"',
        questions=f'family = "openai"\nbase_url = "{servers["llm"].base_url}"\nmodel = "m"',
    )
    with running(port, command, directory / "stderr") as process:
        wait_until_ready(process, port)
        with httpx.Client(base_url=url(port), timeout=180, trust_env=False) as client:
            yield client


@pytest.fixture(scope="module")
def with_vlm(servers, tmp_path_factory):
    """A client of a service whose one model is a VLM served by vLLM."""
    directory, port = tmp_path_factory.mktemp("with-vlm"), free_port(0)
    table = f'family = "openai_vlm"\nbase_url = "{servers["vlm"].base_url}"\nmodel = "m"\ntimeout_s = 170'
    with running(port, profile(directory, vqa=table), directory / "stderr") as process:
        wait_until_ready(process, port)
        with httpx.Client(base_url=url(port), timeout=180, trust_env=False) as client:
            yield client


def scored(client, prompts, metric, picture=PICTURE, beside=None, **options):
    """The results of one picture against *prompts*, with fields *beside* it."""
    image = base64.b64encode(picture).decode()
    body = {
        "items": [{"prompt": prompt, "image": image, **(beside or {})} for prompt in prompts],
        "metrics": [metric],
        "options": {metric: options},
        "explain": True,
        "timeout_ms": 170_000,
    }
    answer = client.post("/score", json=body)
    assert 200 == answer.status_code, answer.text
    return answer.json()["results"]


def written(client, prompts):
    """The answer of `/questions`."""
    return client.post("/questions", json={"prompts": prompts, "timeout_ms": 170_000})


def test_vllm_writes_the_sets_that_the_embedded_llm_writes(with_llm):
    """One checkpoint, one schema, two engines: the same questions, so the same ids."""
    prompts = [sample["right"] for sample in LISTED]
    embedded = QuestionLLM(DEMO / "question_llm", dtype="float32", device="cpu")
    written_here = embedded.score([embedded.prepare(STYLE.call(prompt)) for prompt in prompts])
    expected = [
        QuestionSet(prompt, "dsg", STYLE.parse(outcome.text)).id
        for prompt, outcome in zip(prompts, written_here, strict=True)
    ]

    assert expected == [made["id"] for made in written(with_llm, prompts).json()["sets"]]


def test_dsg_is_scored_with_questions_from_vllm(with_llm):
    """The right prompt of a sample scores above its wrong one."""
    sample = LISTED[1]
    right, wrong = scored(with_llm, [sample["right"], sample["wrong"]], "dsg")

    assert right["scores"]["dsg"] > wrong["scores"]["dsg"]


def test_a_killed_vllm_gives_explicit_errors_and_is_found_again(with_llm, servers):
    """kill -9 under load: every prompt gets a set or an error, stored sets stay, and it comes back."""
    server = servers["llm"]
    stored, fresh = "a white ring", [f"{n} {shape}s" for n in ("two", "four") for shape in ("star", "square")]
    assert 200 == written(with_llm, [stored]).status_code
    with ThreadPoolExecutor(4) as pool:
        answers = [pool.submit(written, with_llm, [prompt]) for prompt in fresh]
        server.kill()
        outcomes = {answer.result().status_code for answer in answers}
    after = written(with_llm, ["three hearts"])
    kept = written(with_llm, [stored])
    wait_for(lambda: "cannot be reached" in with_llm.get("/readyz").json()["models"]["questions"])
    server.start()
    server.wait()
    wait_for(lambda: "ready" == with_llm.get("/readyz").json()["models"]["questions"])
    again = written(with_llm, ["three hearts"])

    assert outcomes <= {200, 502}
    assert (502, "question_llm_failed") == (after.status_code, after.json()["code"])
    assert (200, True) == (kept.status_code, kept.json()["sets"][0]["cached"])
    assert 200 == again.status_code


def wait_for(true, seconds=60):
    """Until the service has noticed."""
    deadline = time.monotonic() + seconds
    while not true():
        assert time.monotonic() < deadline
        time.sleep(0.1)


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


SHAPE = {"id": 1, "text": "What is it?", "choices": ["a ring", "a star", "a heart"], "expected": "a star"}


def test_a_vlm_gives_its_choices_the_probabilities_that_transformers_computes(with_vlm, llava):
    """Of the letters as the first token, each among all of them."""
    rgb = PIL.Image.open(io.BytesIO(PICTURE)).convert("RGB")
    asked = "What is it?\nA. a ring\nB. a star\nC. a heart\n" + BY_LETTER
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
    rubric, values = RUBRICS[template], VALUES[labels]
    after, source = pixels(PICTURE), (FOLDER / LISTED[2]["file"]).read_bytes()
    edited = template == "editing"
    before = [rubric.pictures["source"], pixels(source), rubric.pictures["image"]] if edited else []
    exact = label_probabilities(llava, after, rubric.text("a red star", labels), (*values,), before)
    beside = {"source": base64.b64encode(source).decode()} if edited else {}
    [result] = scored(with_vlm, ["a red star"], "judge", beside=beside, template=template, labels=labels)

    expected = sum(p * value for p, value in zip(exact, values.values(), strict=True)) / sum(exact)
    told = result["details"]["judge"]
    assert result["scores"]["judge"] == pytest.approx(expected, abs=1e-5)
    assert told["probabilities"] == pytest.approx(dict(zip(values, exact, strict=True)), abs=1e-5)
    assert told["label_mass"] == pytest.approx(sum(exact), abs=2e-5)


def test_a_vlm_compares_with_three_references_in_their_order(with_vlm, llava):
    """Four pictures in one message; other references are another grade."""
    rubric, labels = RUBRICS["anchored_likeness"], tuple(VALUES["1-5"])
    files = [(FOLDER / sample["file"]).read_bytes() for sample in LISTED[2:5]]
    introduced = [rubric.pictures["references"].replace("{}", str(n)) for n in (1, 2, 3)]
    pairs = zip(introduced, map(pixels, files), strict=True)
    before = [*(each for pair in pairs for each in pair), rubric.pictures["image"]]
    exact = label_probabilities(llava, pixels(PICTURE), rubric.text("a star", "1-5"), labels, before)
    sent = [base64.b64encode(file).decode() for file in files]
    [result], [turned] = (
        scored(with_vlm, ["a star"], "judge", beside={"references": order}, template="anchored_likeness")
        for order in (sent, sent[::-1])
    )

    told = result["details"]["judge"]
    assert told["probabilities"] == pytest.approx(dict(zip(labels, exact, strict=True)), abs=1e-5)
    assert told["probabilities"] != pytest.approx(turned["details"]["judge"]["probabilities"], abs=1e-5)


def pixels(file):
    """A picture file's, in RGB."""
    return PIL.Image.open(io.BytesIO(file)).convert("RGB")


def test_questions_about_one_image_share_its_prefix(with_vlm, servers):
    """Eight that arrive together: vLLM computes the image's part of the prompt once, and reads it once."""
    server, picture = servers["vlm"], (FOLDER / LISTED[0]["file"]).read_bytes()
    names = ("vllm:prefix_cache_hits_total", "vllm:mm_cache_hits_total")
    before = [server.counter(name) for name in names]
    results = scored(with_vlm, EIGHT, "vqascore", picture)
    prefix, images = (server.counter(name) - old for name, old in zip(names, before, strict=True))

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
