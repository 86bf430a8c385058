"""A VLM behind an OpenAI-compatible server, as a VQA model."""

import math
import threading

import pytest

from models.families.openai import vlm
from tests.support.fake_openai import said, weighed
from tests.support.pictures import b64, item, png

pytestmark = pytest.mark.anyio

PROMPT = "a red dog"


async def vqa(client, **more):
    body = {"items": [item(PROMPT)], "metrics": ["vqascore"], "explain": True, **more}
    answer = await client.post("/score", json=body)
    assert 200 == answer.status_code
    return answer.json()["results"][0]


async def test_label_probabilities_come_from_named_tokens(with_vlm, server):
    """The image stands before the text, in the model's own words, and the labels are asked for by id."""
    server.chat = lambda body: (200, weighed(id5=-0.5, id6=-2.0, id9=-0.1))
    async with with_vlm() as client:
        result = await vqa(client)

    assert pytest.approx(math.exp(-0.5)) == result["scores"]["vqascore"]
    assert pytest.approx(1.5) == result["details"]["vqascore"]["logit"]
    assert pytest.approx(math.exp(-0.5) + math.exp(-2)) == result["details"]["vqascore"]["label_mass"]
    [body] = server.bodies
    image, text = body["messages"][0]["content"]
    assert image["image_url"]["url"].startswith("data:image/png;base64,")
    assert f"Is {PROMPT} here?" == text["text"]
    assert ([5, 6], True, 1) == (body["logprob_token_ids"], body["logprobs"], body["max_tokens"])


async def test_a_server_without_token_ids_is_read_by_its_likeliest_tokens(with_vlm, server):
    """Its labels may have a space before them; the likeliest form counts."""
    server.tokens = None
    server.chat = lambda body: (200, weighed(**{"Yes": -3.0, " Yes": -0.5, "No": -1.0}))
    async with with_vlm() as client:
        result = await vqa(client)

    assert pytest.approx(math.exp(-0.5)) == result["scores"]["vqascore"]
    assert "logprob_token_ids" not in server.bodies[0]


@pytest.mark.parametrize(("metric", "score"), [("dsg", 0.5), ("vq2", 0.5)])
async def test_answers_may_be_written_by_the_model(with_vlm, server, metric, score):
    """They begin with yes or no, as in the released code; there is no probability, and no label."""
    server.chat = lambda body: (200, said("Yes, it is." if "dog" in str(body) else " no"))
    questions = [{"id": n, "text": f"Is there a {noun}?"} for n, noun in enumerate(("dog", "cat"), 1)]
    options = {"answers": "generated", "question_set": questions}
    if metric == "vq2":
        options["question_set"] = [{**each, "expected": "it"} for each in questions]
    async with with_vlm() as client:
        result = await vqa(client, metrics=[metric], options={metric: options})

    assert score == result["scores"][metric]
    assert [None, None] == [q["label_mass"] for q in result["details"][metric]["questions"]]
    assert all("logprobs" not in body and body["max_tokens"] == 64 for body in server.bodies)


@pytest.mark.parametrize(
    ("answer", "code"),
    [
        (said("Perhaps."), "unanswered"),
        (said("None of it"), "unanswered"),
        (said(None), "upstream_failed"),
        (said("yes", "length"), "upstream_failed"),
    ],
)
async def test_a_written_answer_that_is_neither_yes_nor_no_is_an_error(with_vlm, server, answer, code):
    """Never 0."""
    server.chat = lambda body: (200, answer)
    options = {"answers": "generated", "question_set": [{"id": 1, "text": "Is there a dog?"}]}
    async with with_vlm() as client:
        result = await vqa(client, metrics=["dsg"], options={"dsg": options})

    assert ({}, code) == (result["scores"], result["errors"]["dsg"]["code"])


@pytest.mark.parametrize(
    ("answer", "told"),
    [
        (weighed(Yes=-0.5), "no log-probability for 'No'"),
        (weighed(Yes=-0.5, No=-9999.0), "of 'No' that is not finite"),
        (said("Yes"), "returned no log-probabilities"),
        ({"choices": 3}, "returned no choices"),
    ],
)
async def test_a_label_without_a_probability_is_an_error_and_never_0(with_vlm, server, answer, told):
    """`upstream_failed`, and no score."""
    server.chat = lambda body: (200, answer)
    async with with_vlm() as client:
        result = await vqa(client)

    assert {} == result["scores"]
    assert "upstream_failed" == result["errors"]["vqascore"]["code"]
    assert told in result["errors"]["vqascore"]["detail"]


async def test_an_answer_of_two_tokens_is_refused(with_vlm, server):
    """A VLM's likelihood is one token's; the caller learns that instead of half a number."""
    async with with_vlm() as client:
        result = await vqa(client, options={"vqascore": {"answer": "maybe so"}})

    assert "call_refused" == result["errors"]["vqascore"]["code"]
    assert [] == server.bodies


async def test_one_failing_call_spares_its_neighbours(with_vlm, server):
    """Failures are per call."""
    bad = "a bad one"
    server.chat = lambda body: (
        (500, {}) if bad in body["messages"][0]["content"][1]["text"] else (200, weighed(id5=-0.5, id6=-2.0))
    )
    async with with_vlm() as client:
        body = {"items": [item(PROMPT), item(bad), item("a third")]}
        results = (await client.post("/score", json=body)).json()["results"]

    assert [1, 0, 1] == [len(result["scores"]) for result in results]
    assert "upstream_failed" == results[1]["errors"]["vqascore"]["code"]


async def test_no_more_calls_are_under_way_than_allowed(with_vlm, server):
    """`max_in_flight` of them are, and the rest wait their turn."""
    lock, pair, under_way, most = threading.Lock(), threading.Barrier(2), 0, 0

    def chat(body):
        nonlocal under_way, most
        with lock:
            under_way += 1
            most = max(most, under_way)
        pair.wait(10)  # nobody is answered before a second one is here
        with lock:
            under_way -= 1
        return 200, weighed(id5=-0.5, id6=-2.0)

    server.chat = chat
    async with with_vlm(max_in_flight=2) as client:
        body = {"items": [item(f"{n}") for n in range(6)]}
        answer = (await client.post("/score", json=body)).json()
        metrics = (await client.get("/metrics")).text

    assert not answer["partial"]
    assert 2 == most
    assert 'calls_total{lane="interactive",model="vqa",result="ok"} 6.0' in metrics


COLOUR = {"id": 1, "text": "What color is it?", "choices": ["red", "blue"], "expected": "blue"}
LETTERS = {"A": [11], "B": [12]}
WAYS = {"blue": [21], " blue": [22], "Blue": [23, 24], " Blue": [9, 21]}


async def asked(client, metric, **options):
    """The result of one question that is sent along."""
    more = {"metrics": [metric], "options": {metric: {"question_set": [COLOUR], **options}}}
    return await vqa(client, **more)


async def test_choices_are_letters_of_which_the_likeliest_is_the_answer(with_vlm, server):
    """One request, whose question lists them; their shares add up to 1."""
    server.tokens = LETTERS
    server.chat = lambda body: (200, weighed(id11=-3.0, id12=-1.0, id5=-0.1))
    async with with_vlm() as client:
        result = await asked(client, "tifa")

    [body] = server.bodies
    assert (
        "What color is it?\nA. red\nB. blue\nAnswer with the option's letter from the given choices directly."
    ) == body["messages"][0]["content"][1]["text"]
    assert [11, 12] == body["logprob_token_ids"]
    [question] = result["details"]["tifa"]["questions"]
    assert ("blue", 1) == (question["answer"], result["scores"]["tifa"])
    red = 1 / (1 + math.exp(2))
    assert {"red": red, "blue": 1 - red} == pytest.approx(question["probabilities"])


async def test_a_choice_whose_letter_has_no_probability_is_an_error_and_never_0(with_vlm, server):
    """Also where the server gives its likeliest tokens only."""
    server.tokens = None
    server.chat = lambda body: (200, weighed(A=-0.1, Yes=-3.0))
    async with with_vlm() as client:
        result = await asked(client, "tifa")

    assert {} == result["scores"]
    assert "upstream_failed" == result["errors"]["tifa"]["code"]
    assert "no log-probability for 'B'" in result["errors"]["tifa"]["detail"]


async def test_the_first_tokens_of_an_answer_are_asked_for_by_id_and_each_counts_once(with_vlm, server):
    """In every way of writing it; a space that is a token of its own says nothing of the answer."""
    server.tokens, server.pieces = WAYS, {9: "Ġ"}
    server.chat = lambda body: (200, weighed(id21=-1.0, id22=-2.0, id23=-3.0, id9=-0.1))
    async with with_vlm() as client:
        result = await asked(client, "soft_tifa")

    assert [21, 22, 23] == server.bodies[0]["logprob_token_ids"]
    assert sum(map(math.exp, (-1, -2, -3))) == pytest.approx(result["scores"]["soft_tifa"])


@pytest.mark.parametrize(
    ("tokens", "answer", "told"),
    [
        (WAYS, weighed(id21=-1.0, id22=-2.0), "no log-probability for 'Blue'"),
        (WAYS, weighed(blue=-1.0), "no log-probability for 'blue'"),
        (None, weighed(blue=-1.0, Blue=-2.0), "no /tokenize"),
    ],
)
async def test_first_tokens_that_are_not_all_known_are_an_error(with_vlm, server, tokens, answer, told):
    """A sum over some of them would be too small, and a text does not show how an answer begins."""
    server.tokens = tokens
    server.chat = lambda body: (200, answer)
    async with with_vlm() as client:
        result = await asked(client, "soft_tifa")

    assert {} == result["scores"]
    assert "upstream_failed" == result["errors"]["soft_tifa"]["code"]
    assert told in result["errors"]["soft_tifa"]["detail"]


async def test_tokens_are_asked_for_once(with_vlm, server):
    """Two questions with the same answer, and the same server."""
    seen = []
    server.tokens = Noted(WAYS, seen)
    server.chat = lambda body: (200, weighed(id21=-1.0, id22=-2.0, id23=-3.0, id9=-4.0))
    async with with_vlm(max_in_flight=1) as client:
        await asked(client, "soft_tifa")
        await asked(client, "soft_tifa", question="{} Say it.")

    assert 2 == len(server.bodies)
    assert sorted(WAYS) == sorted(seen)


class Noted(dict):
    """Keeps what it was asked for."""

    def __init__(self, known, seen):
        super().__init__(known)
        self.seen = seen

    def __getitem__(self, key):
        self.seen.append(key)
        return super().__getitem__(key)


@pytest.mark.slow
async def test_a_picture_of_many_pairs_is_encoded_once(with_vlm, server, monkeypatch):
    """Nine pictures in 36 pairs and both orders: 72 requests with two pictures each, and nine encodings."""
    encoded, encode = [], vlm.data_uri
    server.tokens = {"A": [1], "B": [2], "C": [3]}
    server.chat = lambda body: (200, weighed(id1=-0.1, id2=-4.0, id3=-4.0))
    colours = ("red", "blue", "green", "white", "black", "yellow", "lime", "pink", "grey")
    body = {"prompt": PROMPT, "images": [b64(png(colour)) for colour in colours], "rubric": "preference"}
    async with with_vlm() as client:
        monkeypatch.setattr(vlm, "data_uri", lambda rgb: encoded.append(rgb) or encode(rgb))
        answer = await client.post("/compare", json=body)

    assert 36 == len(answer.json()["pairs"])
    parts = [
        [part for part in each["messages"][0]["content"] if "image_url" in part] for each in server.bodies
    ]
    assert [2] * 72 == list(map(len, parts))
    assert 9 == len(encoded) == len({each["image_url"]["url"] for pair in parts for each in pair})
