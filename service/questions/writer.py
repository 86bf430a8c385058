"""Get the question set of a prompt: stored, being written already, or written now."""

import asyncio
import hashlib
from time import monotonic

import orjson

from models.base import GenerateCall
from service.context import Context, Found
from service.errors import (
    CallRefused,
    NotReady,
    QuestionLLMFailed,
    ScoregateError,
    UnknownQuestionSet,
)
from service.questions.sets import QuestionSet, parse
from service.questions.store import Store
from service.questions.templates import SCHEMA, messages, template_hash
from service.serving.handle import Handle
from service.serving.single_flight import SingleFlight
from service.telemetry import BULK, INTERACTIVE, Instruments

DECODING = "greedy"
REPEATABLE = {"transformers"}  # families that answer the same however often they are asked
TRIES = 2  # of the others


class Questions:
    """Question sets by prompt; each is written once, however many requests arrive together."""

    def __init__(
        self,
        store: Store,
        llm: Handle | None,
        timeout_s: float,
        instruments: Instruments,
    ) -> None:
        self._store, self._llm, self._timeout_s = store, llm, timeout_s
        self._instruments = instruments
        self._flights: SingleFlight[QuestionSet] = SingleFlight()
        self._writing: dict[str, Context] = {}  # of each flight: its own, since its first caller may leave

    async def aclose(self) -> None:
        """Stop writing."""
        await self._flights.aclose()

    @property
    def llm(self) -> Handle:
        """The question LLM.  Raises `NotReady` where none is configured."""
        if self._llm is None:
            raise NotReady("no question LLM is configured")
        return self._llm

    async def of(self, prompt: str, style: str, context: Context) -> tuple[QuestionSet, Found]:
        """
        The set for *prompt* and how it was found.

        Raises:
            QuestionLLMFailed: the LLM answered badly or too late.
            NoQuestions: it found nothing to ask.
            NotReady: no question LLM is configured, or the store failed.
        """
        began = monotonic()
        context.stage = "questions"
        key = self.lookup_key(prompt, style)
        stored = await self._store.find(key)
        found: Found = "hit"
        if stored is None:
            writing = self._writing.setdefault(key, context.for_shared_work())
            if context.lane == INTERACTIVE and writing.lane == BULK:
                self._hurry(writing, prompt, style)
            stored, joined = await self._flights.do(key, lambda: self._write(key, prompt, style))
            found = "coalesced" if joined else "miss"
        self._instruments.cache_requests.labels("questions", found).inc()
        context.spent("questions", monotonic() - began)
        return stored, found

    async def pinned(self, id: str) -> QuestionSet:
        """The stored set with that id.  Raises `UnknownQuestionSet`."""
        stored = await self._store.get(id) if id.startswith("sha256:") else None
        if stored is None:
            raise UnknownQuestionSet(f"no question set {id} is stored here")
        return stored

    def lookup_key(self, prompt: str, style: str) -> str:
        """Names a request for a set: everything the answer depends on."""
        llm = self.llm.info.label
        recipe = [prompt, style, template_hash(style), llm, DECODING]
        return "lookup:" + hashlib.sha256(orjson.dumps(recipe)).hexdigest()

    def _hurry(self, writing: Context, prompt: str, style: str) -> None:
        """Somebody urgent waits for a set that a bulk request has written."""
        writing.lane = INTERACTIVE  # for the tries that are still to come
        for seed in range(TRIES):
            self.llm.lift(question_call(prompt, style, seed))

    async def _write(self, key: str, prompt: str, style: str) -> QuestionSet:
        """A set, put into the store."""
        try:
            written = await self._written(prompt, style, self._writing[key])
            return await self._store.put(key, written)
        finally:
            del self._writing[key]

    async def _written(self, prompt: str, style: str, context: Context) -> QuestionSet:
        """A set, asked for once more where the first answer is none and another may differ."""
        count = self._instruments.question_llm_calls
        tries = 1 if self.llm.info.family in REPEATABLE else TRIES
        for seed in range(tries):
            result = "error"
            try:
                text = await self._generate(prompt, style, seed, context)
                result = "invalid"
                written = parse(text, prompt, style, self._provenance(style))
                result = "ok"
                break
            except QuestionLLMFailed:
                if result == "error" or seed == tries - 1:
                    raise
            finally:
                count.labels(result).inc()
        return written

    async def _generate(self, prompt: str, style: str, seed: int, context: Context) -> str:
        call = question_call(prompt, style, seed)
        context.deadline = asyncio.get_running_loop().time() + self._timeout_s
        try:
            async with asyncio.timeout_at(context.deadline):
                [text] = await self.llm.ask([call], context)
        except TimeoutError as exc:
            raise QuestionLLMFailed(f"no answer within {self._timeout_s:g} s") from exc
        if isinstance(text, CallRefused):
            raise text  # the prompt's fault, and no use in asking again
        if isinstance(text, ScoregateError):
            raise QuestionLLMFailed(text.detail) from text
        return str(text)

    def _provenance(self, style: str) -> dict[str, str]:
        return {"llm": self.llm.info.label, "template": template_hash(style), "decoding": DECODING}


def question_call(prompt: str, style: str, seed: int = 0) -> GenerateCall:
    """What the question LLM is asked for a prompt's set."""
    return GenerateCall(*messages(prompt, style), schema=SCHEMA, seed=seed)
