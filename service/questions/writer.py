"""Get the question set of a prompt: stored, being written already, or written now."""

import asyncio
import hashlib
from collections.abc import Mapping, Sequence
from dataclasses import replace
from time import monotonic

import orjson

from models.calls import GenerateCall
from models.outcomes import Text
from service.concurrency.single_flight import SingleFlight
from service.concurrency.together import side_by_side
from service.context import Context, Found
from service.errors import (
    REFUSALS,
    CallRefused,
    NoQuestions,
    QuestionLLMFailed,
    ScoregateError,
    UnknownQuestionSet,
)
from service.lanes import INTERACTIVE
from service.questions.sets import Question, QuestionSet, check
from service.questions.stores.contract import Store
from service.questions.style import Style
from service.serving.demand import Demand
from service.serving.handle import Handle
from service.telemetry import Instruments

DECODING = "greedy"
TRIES = 2  # of a model that may answer otherwise when it is asked once more


class QuestionWriter:
    """
    Question sets by prompt; each is written once, however many requests arrive together.

    Args:
        timeouts_s: seconds for one set, by the LLM's configured name.
    """

    def __init__(self, store: Store, timeouts_s: Mapping[str, float], instruments: Instruments) -> None:
        self._store, self._timeouts_s, self._instruments = store, timeouts_s, instruments
        self._flights: SingleFlight[QuestionSet] = SingleFlight()
        self._writing: dict[str, Context] = {}  # of each flight: its own, since its first caller may leave

    async def aclose(self) -> None:
        """Stop writing."""
        await self._flights.aclose()

    async def of(self, prompt: str, style: Style, llm: Handle, context: Context) -> tuple[QuestionSet, Found]:
        """
        The set for *prompt* and how it was found.

        Raises:
            LaneFull, Overloaded: it has to be written, and the LLM takes no more.
            QuestionLLMFailed: the LLM answered badly or too late.
            NoQuestions: it found nothing to ask.
            NotReady: the store failed, or the LLM does not serve.
        """
        began = monotonic()
        context.stage = "questions"
        key = lookup_key(prompt, style, llm.info.label)
        stored = await self._store.find(key)
        found: Found = "hit"
        if stored is None:
            if key not in self._writing:
                llm.admit(context, Demand(1, len(prompt)))
            writing = self._writing.setdefault(key, context.for_shared_work())
            if context.lane == INTERACTIVE:
                writing.promote()
            stored, joined = await self._flights.do(key, lambda: self._write(key, prompt, style, llm))
            found = "coalesced" if joined else "miss"
        self._instruments.cache_requests.labels("questions", found).inc()
        context.spent("questions", monotonic() - began)
        return stored, found

    async def unwritten(self, prompts: Sequence[str], style: Style, llm: Handle) -> list[str]:
        """Those of *prompts* whose sets are neither stored nor being written.  Raises `NotReady`."""
        keys = {prompt: lookup_key(prompt, style, llm.info.label) for prompt in prompts}
        fresh = {prompt: key for prompt, key in keys.items() if key not in self._writing}
        stored = await side_by_side([self._store.find(key) for key in fresh.values()])
        return [prompt for prompt, found in zip(fresh, stored, strict=True) if found is None]

    async def pinned(self, id: str) -> QuestionSet:
        """The stored set with that id.  Raises `UnknownQuestionSet`."""
        stored = await self._store.get(id) if id.startswith("sha256:") else None
        if stored is None:
            raise UnknownQuestionSet(f"no question set {id} is stored here")
        return stored

    async def _write(self, key: str, prompt: str, style: Style, llm: Handle) -> QuestionSet:
        """A set, put into the store."""
        try:
            questions = await self._written(prompt, style, llm, self._writing[key])
            provenance = {"llm": llm.info.label, "template": style.hash, "decoding": DECODING}
            return await self._store.put(key, QuestionSet(prompt, style.name, questions, provenance))
        finally:
            del self._writing[key]

    async def _written(
        self, prompt: str, style: Style, llm: Handle, context: Context
    ) -> tuple[Question, ...]:
        """Questions, asked for once more where the first answer is bad and another may differ."""
        bad = BadAnswer()
        for seed in range(1 if llm.info.repeatable else TRIES):
            try:
                return await self._attempt(prompt, style, llm, seed, context)
            except BadAnswer as exc:
                bad = exc
        raise QuestionLLMFailed(f"the question LLM's answer is not a question set: {bad}") from bad

    async def _attempt(
        self, prompt: str, style: Style, llm: Handle, seed: int, context: Context
    ) -> tuple[Question, ...]:
        """
        The questions of one try.

        Raises:
            BadAnswer: the LLM answered with something else.
            LaneFull, Overloaded, NotReady: it was not asked.
            QuestionLLMFailed: it failed, or did not answer in time.
        """
        timeout_s = self._timeouts_s[llm.name]
        context.deadline = asyncio.get_running_loop().time() + timeout_s
        result = "error"

        async def ask(call: GenerateCall) -> str:
            nonlocal result
            result = "error"
            text = await generated(llm, replace(call, seed=seed), context)
            result = "invalid"  # until it has been read
            return text

        try:
            async with asyncio.timeout_at(context.deadline):
                questions = checked(await style.write(ask, prompt))
            result = "ok"
            return questions
        except REFUSALS:
            result = ""  # it was never asked
            raise
        except (ValueError, KeyError, TypeError) as exc:
            reason = str(exc) if type(exc) is ValueError else "not the JSON that was asked for"
            raise BadAnswer(reason) from exc
        except TimeoutError as exc:
            raise QuestionLLMFailed(f"the question LLM did not answer within {timeout_s:g} s") from exc
        finally:
            if result:
                self._instruments.question_llm_calls.labels(result).inc()


class BadAnswer(Exception):
    """The LLM answered with something that is not a question set; the message says why."""


def lookup_key(prompt: str, style: Style, llm: str) -> str:
    """Names a request for a set: everything the answer depends on."""
    recipe = [prompt, style.name, style.hash, llm, DECODING]
    return "lookup:" + hashlib.sha256(orjson.dumps(recipe)).hexdigest()


def checked(questions: tuple[Question, ...]) -> tuple[Question, ...]:
    """Questions that make a set.  Raises `ValueError`, or `NoQuestions` where there are none."""
    check(questions)
    if not questions:
        raise NoQuestions("the question LLM found nothing in this prompt to ask about")
    return questions


async def generated(llm: Handle, call: GenerateCall, context: Context) -> str:
    """
    What the LLM wrote.

    Raises:
        LaneFull, Overloaded, NotReady: it was not asked.
        CallRefused: the prompt is at fault.
        QuestionLLMFailed: everything else.
    """
    [outcome] = await llm.ask([call], context)
    if isinstance(outcome, (*REFUSALS, CallRefused)):
        raise outcome  # to ask again would not help
    match outcome:
        case ScoregateError():
            raise QuestionLLMFailed(outcome.detail) from outcome
        case Text(text):
            return text
    raise QuestionLLMFailed("the question LLM's answer is not a text")
