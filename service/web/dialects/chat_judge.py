"""
Judges and reward clients in OpenAI's chat format: one picture is judged in a request.

The message of the user has one picture and a text, which decides what the answer is:

* **A prompt** alone: `{"score": 0.93, "metric": "vqascore"}`, by the metric `model`, or that of the
  settings.
* **A question**, with `logprobs`: `Yes` or `No`; `top_logprobs` has both, exactly: P("Yes") and P("No") of
  the VQA model `model`, for the question as sent.
* **Instructions**, with `response_format` a JSON schema, if `judge.allow_inline` is set: the object, such
  as `{"fit": 4, "why": "…"}`, which the VQA model `model` writes at temperature 0, parsed strictly.
* **A rubric**, lines `- NAME: QUESTION` below a line `CORRECTNESS QUESTIONS:` and after the line `User
  request: …`: `{"correctness": 0.8, "correctness_scores": {"NAME": 0.9, …}, "findings": "…", …}`, P("Yes")
  of each question by the VQA model `model`.

The second is for Flow-Factory's `vllm_evaluate`, the last for verl-omni's agentic judge
(`AGENTIC_VLLM_URL=http://127.0.0.1:8001`).

Other instructions to a judge ("Rate this image from 0 to 10", "Respond in JSON") and questions without
`logprobs` are 400: use `POST /score`. Sampling parameters have no effect, and system messages only with a
schema. Streaming, `n` above 1, further turns and a second picture are rejected.

A schema is an object whose properties are all required: integers with `minimum` and `maximum` (or an `enum`
of all integers between two), numbers, and strings with an `enum` or without. Another one is 400. An answer
that does not follow it is 502 `answer_refused`. Limits: 16 messages, 256 parts, a prompt of 4,000
characters, another text of 16,000, and 64 questions of a rubric.
"""

import json
import re
import time
from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from math import log
from statistics import fmean
from typing import Annotated, Any, Literal, Self

from fastapi import APIRouter, Request, Response
from pydantic import Field

from models.core.calls import AnswerCall
from service.core.errors import AnswerRefused, Invalid, ScoregateError
from service.core.fields import MAX_PROMPT, PLACEHOLDER, Whole
from service.images.loader import ImageRef
from service.metrics.common.contract import Score
from service.metrics.rubrics.answer import OutputValue, parsed
from service.metrics.rubrics.output import Output
from service.metrics.rubrics.schema import outputs_of
from service.serving.admission import Demand
from service.web.dialects.questions import (
    MAX_PARTS,
    MAX_TEXT,
    Reading,
    TypedQuestion,
    failed_nested,
    outcomes_of,
    readings,
    with_input,
    within_limits,
)
from service.web.dialects.registry import Dialect
from service.web.dialects.scoring import Wanted, raise_most_telling
from service.web.dialects.wire import ImageSource, Loose, dialects_of, image_source, is_image, read_as, text
from service.web.endpoints import json_response, service_of
from service.web.problems import errors_in

MAX_MESSAGES = 16
MAX_TOKENS = 1024  # tokens of an answer by a schema


class Message(Loose):
    """
    One message; only that of the user is read.

    Attributes:
        role: whose message it is.
        content: a text, or parts: texts and one picture.
    """

    role: Literal["system", "developer", "user"]
    content: Any = None

    def parts(self) -> list[Any]:
        """Return the parts of the content; a str is a part of text."""
        return self.content if isinstance(self.content, list) else [self.content]

    def texts(self, pointer: str) -> list[str]:
        """Return the texts of the content.  Raises `Invalid` for a part that is neither text nor picture."""
        texts = []
        for number, part in enumerate(self.parts()):
            if is_image(part):
                continue
            said = part.get("text") if isinstance(part, dict) else part
            if not isinstance(said, str):
                raise Invalid(f"{pointer}/{number}: is neither a text nor a picture")
            texts.append(said)
        return texts


class ChatRequest(Loose):
    """
    The body.

    Attributes:
        model: a metric for one score, a VQA model for questions; None and `default` are the first.
        logprobs: the text is a question, whose answer has the log-probabilities of yes and no.
        response_format: with a JSON schema the texts are instructions.
        messages: system messages, and one of the user.
        n: 1, or left out.
        stream: false, or left out.
    """

    messages: Annotated[list[Message], Field(min_length=1, max_length=MAX_MESSAGES, fail_fast=True)]
    model: str | None = None
    logprobs: bool | None = None
    n: Whole | None = None
    stream: bool | None = None
    response_format: Any = None

    @property
    def has_schema(self) -> bool:
        """True if the answer must follow a JSON schema."""
        return isinstance(self.response_format, dict) and self.response_format.get("type") == "json_schema"

    def judged(self) -> tuple[ImageSource, str]:
        """Return the picture and the text of the user's message.  Raises `Invalid` for any other request."""
        if self.stream:
            raise Invalid("/stream: an answer is not streamed here")
        if self.n not in (None, 1):
            raise Invalid("/n: there is one answer to each request")
        asked = [(place, each) for place, each in enumerate(self.messages) if each.role == "user"]
        if len(asked) != 1:
            raise Invalid(f"/messages: has {len(asked)} messages of the user; one is needed")
        [(place, message)] = asked
        pointer = f"/messages/{place}/content"
        if len(message.parts()) > MAX_PARTS:
            raise Invalid(f"{pointer}: has {len(message.parts())} parts; at most {MAX_PARTS} are read")
        images = [each for each in message.parts() if is_image(each)]
        if len(images) != 1:
            raise Invalid(f"{pointer}: has {len(images)} pictures; one is judged in a request")
        texts = message.texts(pointer)
        if sum(map(len, texts)) > MAX_TEXT:
            raise Invalid(f"{pointer}: the text has more than {MAX_TEXT} characters")
        return image_source(images[0], pointer), "\n".join(texts).strip()


HEADING = re.compile(r"([A-Z][A-Z_ ]*) QUESTIONS:")
LINE = re.compile(r"- (\w+): (.+)")
REQUEST = "User request: "
AFTER_REQUEST = ("Diffusion prompt used", "Notes: ")  # lines that end it
MAX_QUESTIONS = 64


@dataclass(frozen=True, slots=True)
class Facet:
    """One question of a rubric."""

    section: str
    name: str
    question: str


@dataclass(frozen=True, slots=True)
class FacetRubric:
    """The questions, and the request that the picture should fulfil."""

    request: str
    facets: Sequence[Facet]

    def __post_init__(self) -> None:
        """Raise `Invalid` for too many questions, or two of one name."""
        if len(self.facets) > MAX_QUESTIONS:
            raise Invalid(f"/messages: the rubric has more than {MAX_QUESTIONS} questions")
        if len({(each.section, each.name) for each in self.facets}) < len(self.facets):
            raise Invalid("/messages: two questions of a section have one name")

    def questions(self) -> list[TypedQuestion]:
        """Return the questions of yes or no.  Raises `Invalid` for a text that no model can read."""
        state = f"The picture was made for this request: {self.request}" if self.request else ""
        return within_limits(
            TypedQuestion(f"/messages: {each.name}", "yes_no", with_input(state, each.question))
            for each in self.facets
        )

    def answer(self, readings: Sequence[Reading]) -> dict[str, Any]:
        """Return the probability of yes for each question, and the mean of each section."""
        shares = [each.probabilities[0] for each in readings]
        scores: dict[str, dict[str, float]] = defaultdict(dict)
        for facet, share in zip(self.facets, shares, strict=True):
            scores[facet.section][facet.name] = share
        lowest, facet = min(zip(shares, self.facets, strict=True), key=lambda each: each[0])
        return {
            **{section: fmean(found.values()) for section, found in scores.items()},
            **{f"{section}_scores": found for section, found in scores.items()},
            "findings": f"lowest: {facet.name} ({lowest:.2f})",
            "suggested_fixes": "none",
        }


def rubric(text: str) -> FacetRubric | None:
    """Return the rubric in a text, None if there is none.  Raises `Invalid`."""
    section, reads_request = "", False
    headings: dict[str, str] = {}
    facets: list[Facet] = []
    request: list[str] = []
    for line in text.splitlines():
        if heading := HEADING.fullmatch(line.strip()):
            section = heading[1].lower().replace(" ", "_")
            headings[section] = heading[0]
        elif section and (found := LINE.fullmatch(line.strip())):
            facets.append(Facet(section, found[1], found[2]))
        elif section and line.strip().startswith("-"):
            raise Invalid(f"/messages: a line below {headings[section]!r} is not `- NAME: QUESTION`")
        else:
            section = ""
        if line.startswith(REQUEST):
            reads_request, line = True, line.removeprefix(REQUEST)
        elif line.startswith(AFTER_REQUEST) or section:
            reads_request = False
        if reads_request:
            request.append(line)
    asked = {each.section for each in facets}
    # The order of a set differs between processes, and so would the heading that the message names.
    if empty := next((title for name, title in headings.items() if name not in asked), None):
        raise Invalid(f"/messages: there is no line `- NAME: QUESTION` below {empty!r}")
    return FacetRubric("\n".join(request).strip(), facets) if facets else None


# Linear in the text: no part matches both a sentence's start and the white space after it, and of the images
# that a sentence names only the first is tried.
SENTENCE = r"(?:^|[.!?:;\n])[^\S\n]*"
INSTRUCTIONS = re.compile(
    "|".join(
        [
            # "Rate this image …", "Please evaluate how …"
            rf"{SENTENCE}(?:please |carefully )*"
            r"(?:rate|score|grade|evaluate|assess|judges?|compare|decide|determine) "
            r"(?:this|these|the|that|how|if|whether|each|its|both)\b",
            # "Respond in JSON", "Answer with yes or no"
            rf"{SENTENCE}(?:please |only |then |and )*"
            r"(?:respond|reply|answer|return|output|provide|give) [^.\n]{0,60}"
            r"\b(?:json|yes|no|only|number|integer|score|rating|format|letter|word|tag)s?\b",
            r"\bon a scale (?:of|from)\b",
            r"\b(?:rating|score|grade)\s+(?:from|between|of)\s+-?\d+\s*(?:to|and|-)\s*\d",
            r"^you are (?:a|an|the) [^.\n]{0,60}"
            r"\b(?:judges?|evaluator|expert|assistant|critic|grader|annotator)\b",
            # "Does this image show …?"
            r"(?:^|[.\n])(?>[^.\n]*?\b(?:this|the) (?:image|picture|photo|figure|video)\b)[^.\n]*\?",
            # {"score": …}
            r"\{\s*\"\w+\"\s*:",
        ]
    ),
    re.IGNORECASE,
)
FORMS = (
    "read are a prompt alone, with `logprobs` a question of yes or no, and a rubric of lines "
    "`- NAME: QUESTION` below a line `CORRECTNESS QUESTIONS:`"
)


def prompt(text: str) -> str:
    """
    Return *text*.

    Raises:
        Invalid: it is too long, or has instructions, whose score as a prompt would have no meaning.
    """
    if len(text) > MAX_PROMPT:
        raise Invalid(f"/messages: the prompt has more than {MAX_PROMPT} characters")
    if INSTRUCTIONS.search(text):
        raise Invalid(f"/messages: the text has instructions, as for judges; {FORMS}")
    return text


@dataclass(frozen=True, slots=True)
class SchemaInstructions:
    """Instructions whose answer follows a JSON schema of the client: *outputs* are its properties."""

    text: str
    schema: Mapping[str, Any]
    outputs: Mapping[str, Output]

    @classmethod
    def of(cls, wire: ChatRequest, said: str) -> Self:
        """Return the instructions of a request, those of the system first.  Raises `Invalid`."""
        pointer = "/response_format/json_schema/schema"
        named = wire.response_format.get("json_schema")
        schema: Any = named.get("schema") if isinstance(named, dict) else None
        try:
            outputs = outputs_of(schema)
        except ValueError as exc:
            raise Invalid(f"{pointer}: {exc}") from exc
        system = [
            text
            for place, each in enumerate(wire.messages)
            if each.role != "user"
            for text in each.texts(f"/messages/{place}/content")
        ]
        text = "\n\n".join(filter(str.strip, (*system, said)))
        return cls(TypedQuestion("/messages", "yes_no", text).text, schema, outputs)


router = APIRouter(include_in_schema=False)
dialect = Dialect("chat_judge", router, clients="judges and reward clients in OpenAI's chat format")

IMPOSSIBLE = -9999.0  # OpenAI's log-probability of what is too unlikely for a number
NO_TOKENS = {"prompt_tokens": 0, "completion_tokens": 0, "total_tokens": 0}  # no tokens are counted


@router.post("/v1/chat/completions")
@errors_in(failed_nested)
async def completions(request: Request) -> Response:
    """Return the judgement as an assistant's message."""
    takes_rubrics = service_of(request).settings.takes_rubrics
    wire, image, task = await read_as(request, ChatRequest, partial(judged, takes_rubrics=takes_rubrics))
    logprobs = None
    if isinstance(task, SchemaInstructions):
        written, model = await written_by(request, wire, image, task)
        content = json.dumps(written)
    elif isinstance(task, FacetRubric):
        answers, model = await asked(request, wire, image, task.questions())
        content = json.dumps(task.answer(answers))
    elif isinstance(task, TypedQuestion):
        [answer], model = await asked(request, wire, image, [task])
        content, logprobs = ("Yes", "No")[answer.best], logprobs_of(answer)
    else:
        score, model = await scored(request, wire, image, task)
        content = json.dumps({"score": score, "metric": model})
    return json_response(completion(request, model, content, logprobs))


def judged(
    wire: ChatRequest, *, takes_rubrics: bool
) -> tuple[ChatRequest, ImageSource, SchemaInstructions | FacetRubric | TypedQuestion | str]:
    """
    Return a request with its picture, and the instructions, the rubric, the question or the prompt.

    Raises `Invalid`, also for a schema where requests bring no rubrics of their own.
    """
    image, said = wire.judged()
    if wire.has_schema:
        if not takes_rubrics:
            raise Invalid("/response_format: schemas of requests are off in the settings of this service")
        return wire, image, SchemaInstructions.of(wire, said)
    if found := rubric(said):
        return wire, image, found
    if wire.logprobs:
        return wire, image, TypedQuestion("/messages", "yes_no", said, yes_no_template=PLACEHOLDER)
    return wire, image, prompt(said)


async def asked(
    request: Request, wire: ChatRequest, image: ImageSource, questions: list[TypedQuestion]
) -> tuple[list[Reading], str]:
    """Return the answers of a VQA model, and its label."""
    timeout_s = service_of(request).settings.dialects.timeouts_s.chat_judge
    return await readings(request, vqa_of(request, wire), ImageRef(image), questions, timeout_s)


def vqa_of(request: Request, wire: ChatRequest) -> str | None:
    """Return the name of the VQA model; None for the first one, which the name of a metric stands for."""
    return None if wire.model in dialects_of(request).metrics else wire.model


async def written_by(
    request: Request, wire: ChatRequest, image: ImageSource, task: SchemaInstructions
) -> tuple[dict[str, OutputValue], str]:
    """Return what a VQA model writes, by property, and its label.  Raises `AnswerRefused`."""
    service = service_of(request)
    timeout_s = service.settings.dialects.timeouts_s.chat_judge
    [outcome], model = await outcomes_of(
        request,
        vqa_of(request, wire),
        {ImageRef(image): ""},
        lambda images, info: [AnswerCall(images[0], task.text, max_tokens=MAX_TOKENS, schema=task.schema)],
        Demand(1, len(task.text)),
        timeout_s,
    )
    if isinstance(outcome, ScoregateError):
        raise outcome.of_part("/messages")
    try:
        return parsed(outcome.text, "json", task.outputs), model
    except AnswerRefused as refusal:
        service.instruments.refused_answers.labels(refusal.reason).inc()
        raise


async def scored(request: Request, wire: ChatRequest, image: ImageSource, said: str) -> tuple[float, str]:
    """Return the score of the picture for the prompt, and the metric.  Raises the error in its place."""
    dialects = dialects_of(request)
    metric = dialects.metric(None if wire.model == "default" else wire.model)
    wanted = [Wanted(text(said, "/messages"), image, (metric,))]
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
