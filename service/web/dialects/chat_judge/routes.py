"""
`POST /v1/chat/completions` for judges and reward clients: one picture is judged in a request.

The user's text decides what is answered:

* a rubric: the probability of yes for each question, as JSON (verl-omni's agentic rewards),
* with `logprobs` a question: yes or no, with both log-probabilities (Flow-Factory's `vllm_evaluate`),
* a prompt alone: its score by a metric, as JSON.
"""

import json
import time
from math import log
from typing import Any

from fastapi import APIRouter, Request, Response

from service.core.fields import SLOT
from service.images.loader import ImageRef
from service.metrics.common.contract import Score
from service.web.dialects.asking import failed_nested, readings
from service.web.dialects.chat_judge.body import ChatRequest
from service.web.dialects.chat_judge.prompt import prompt
from service.web.dialects.chat_judge.rubric import Rubric, rubric
from service.web.dialects.decisions.questions import Question, Reading
from service.web.dialects.entries import Picture, text
from service.web.dialects.scoring import Wanted, raise_most_telling
from service.web.dialects.wire import dialects_of, read_as
from service.web.problems import errors_in
from service.web.routing import json_response, service_of

router = APIRouter(include_in_schema=False)

IMPOSSIBLE = -9999.0  # OpenAI's log-probability of what is too unlikely for a number
NO_TOKENS = {"prompt_tokens": 0, "completion_tokens": 0, "total_tokens": 0}  # none are counted


@router.post("/v1/chat/completions")
@errors_in(failed_nested)
async def completions(request: Request) -> Response:
    """Return the judgement as an assistant's message."""
    wire, picture, task = await read_as(request, ChatRequest, judged)
    logprobs = None
    if isinstance(task, Rubric):
        answers, model = await asked(request, wire, picture, task.questions())
        content = json.dumps(task.answer(answers))
    elif isinstance(task, Question):
        [answer], model = await asked(request, wire, picture, [task])
        content, logprobs = ("Yes", "No")[answer.best], logprobs_of(answer)
    else:
        score, model = await scored(request, wire, picture, task)
        content = json.dumps({"score": score, "metric": model})
    return json_response(completion(request, model, content, logprobs))


def judged(wire: ChatRequest) -> tuple[ChatRequest, Picture, Rubric | Question | str]:
    """Return a request with its picture, and the rubric, the question or the prompt.  Raises `Invalid`."""
    picture, said = wire.judged()
    if found := rubric(said):
        return wire, picture, found
    if wire.logprobs:
        return wire, picture, Question("/messages", "yes_no", said, yes_no_template=SLOT)
    return wire, picture, prompt(said)


async def asked(
    request: Request, wire: ChatRequest, picture: Picture, questions: list[Question]
) -> tuple[list[Reading], str]:
    """Return the answers of a VQA model, and its label.  The name of a metric stands for the first model."""
    name = None if wire.model in dialects_of(request).metrics else wire.model
    timeout_s = service_of(request).settings.dialects.timeouts_s.chat_judge
    return await readings(request, name, ImageRef(picture), questions, timeout_s)


async def scored(request: Request, wire: ChatRequest, picture: Picture, said: str) -> tuple[float, str]:
    """Return the score of the picture for the prompt, and the metric.  Raises the error in its place."""
    dialects = dialects_of(request)
    metric = dialects.metric(None if wire.model == "default" else wire.model)
    wanted = [Wanted(text(said, "/messages"), picture, (metric,))]
    timeout_s = service_of(request).settings.dialects.timeouts_s.chat_judge
    outcomes = await dialects.scored(request, wanted, timeout_s)
    raise_most_telling([("/messages", outcomes[0])])
    score = outcomes[0][metric]
    assert isinstance(score, Score)
    return score.value, metric


def logprobs_of(answer: Reading) -> dict[str, Any]:
    """Return the log-probabilities of yes and no over the whole vocabulary, the likelier one first."""
    shares = zip(("Yes", "No"), answer.probabilities, strict=True)
    logs = {token: log(share * answer.label_mass) if share else IMPOSSIBLE for token, share in shares}
    tokens = [
        {"token": token, "logprob": logs[token], "bytes": [*token.encode()]}
        for token in sorted(logs, key=logs.__getitem__, reverse=True)
    ]
    return {"content": [{**tokens[0], "top_logprobs": tokens}], "refusal": None}


def completion(request: Request, model: str, content: str, logprobs: dict[str, Any] | None) -> dict[str, Any]:
    """Return the response with one message."""
    message = {"role": "assistant", "content": content, "refusal": None}
    choice = {"index": 0, "message": message, "logprobs": logprobs, "finish_reason": "stop"}
    return {
        "id": f"chatcmpl-{request.state.request_id}",
        "object": "chat.completion",
        "created": int(time.time()),
        "model": model,
        "choices": [choice],
        "usage": NO_TOKENS,
    }
