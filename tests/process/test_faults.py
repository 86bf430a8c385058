"""Faults of a model while many ask: whom they concern, and whom not."""

from concurrent.futures import ThreadPoolExecutor

from models.core.settings import Batch
from tests.support.callers import PROMPTS
from tests.support.double import faulty
from tests.support.service import until


def asked_at_once(double, requests):
    """The answers to *requests*, each a tuple of prompts, that all waited when the device became free."""
    with ThreadPoolExecutor(1 + len(requests)) as pool:
        first = pool.submit(double.score, "held")
        until(double.is_held)
        answers = [pool.submit(double.score, *prompts) for prompts in requests]
        until(lambda: double.counts()["entries"] == sum(map(len, requests)))
        double.release()
        assert 200 == first.result().status_code
        return [answer.result() for answer in answers]


def outcomes(answer):
    """Of each item the score, or the error's code."""
    return [
        result["scores"].get("vqascore") or result["errors"]["vqascore"]["code"]
        for result in answer.json()["results"]
    ]


def test_a_poisoned_call_fails_alone(double):
    """Its neighbours, in the same request and in others, score as they do alone."""
    requests = [*((prompt,) for prompt in PROMPTS), ("a dog", "poisoned 1", "a cat"), ("poisoned 2",)]
    sound = [prompt for prompts in requests for prompt in prompts if "poisoned" not in prompt]
    alone = {prompt: outcomes(double.score(prompt))[0] for prompt in sound}
    alone |= dict.fromkeys(("poisoned 1", "poisoned 2"), "model_fault")
    before = double.counts()["raised"]
    answers = asked_at_once(double, requests)

    assert double.counts()["raised"] > before + 2  # alone each would have raised once
    assert {200} == {answer.status_code for answer in answers}
    for prompts, answer in zip(requests, answers, strict=True):
        assert [alone[prompt] for prompt in prompts] == outcomes(answer)


def test_a_batch_out_of_memory_is_scored_in_smaller_ones(double):
    """Nobody has an error, and every score is the one that the call has alone."""
    prompts = [f"large {prompt}" for prompt in PROMPTS]
    alone = [outcomes(double.score(prompt)) for prompt in prompts]
    before = double.counts()["raised"]
    answers = asked_at_once(double, [(prompt,) for prompt in prompts])

    assert double.counts()["raised"] > before
    assert alone == [outcomes(answer) for answer in answers]
    assert all(isinstance(score, float) for [score] in alone)


def test_a_fault_that_sticks_ends_the_process_with_one_line(tmp_path):
    """Status 3; everyone is answered with an error, in its batch and behind it."""
    with faulty(tmp_path) as double:
        requests = [("stuck",), *((prompt, f"{prompt} 2", f"{prompt} 3") for prompt in PROMPTS)]
        assert sum(map(len, requests)) > Batch().max_items
        answers = asked_at_once(double, requests)

        assert 3 == double.process.wait(60)
        assert {"model_fault"} == {code for answer in answers for code in outcomes(answer)}
        lines = [line for line in double.log.read_text("utf-8").splitlines() if not line.startswith("{")]
        reason = "the model vqa fails on every call since this error: RuntimeError: the device is gone"
        assert [f"scoregate-server: {reason}"] == lines
