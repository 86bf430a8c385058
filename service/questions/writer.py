"""The question set of a prompt: stored, being written by another request, or written now."""

import asyncio
import hashlib
from collections.abc import Awaitable, Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from functools import partial
from time import monotonic

import orjson

from models.core.calls import GenerateCall
from models.core.outcomes import Text
from service.core.concurrency.sharing import SingleFlight
from service.core.errors import (
    REFUSALS,
    CallRefused,
    DeadlineExceeded,
    NoQuestions,
    NotReady,
    Overloaded,
    QuestionLLMFailed,
    ScoregateError,
    UnknownQuestionSet,
)
from service.core.lanes import INTERACTIVE
from service.observability.instruments import Instruments
from service.questions.sets import ID, QuestionSet, check, without_zero
from service.questions.stores.contract import LeaseLost, Store
from service.questions.style import Style, WrittenQuestions
from service.questions.styles.reading import without_wrapping
from service.serving.admission import Demand
from service.serving.context import CacheStatus, Context
from service.serving.handle import Handle

DECODING = "greedy"
LLM_ATTEMPTS = 2  # an LLM's next answer may differ
POLL_S = 0.1  # a set that another process is writing is looked up so often


class QuestionWriter:
    """
    Writes question sets; each prompt's set is written once, even if many requests arrive together.

    Of several processes that share the store one writes.  The others wait, and take over if it ends.

    Args:
        timeouts_s: for one set, in seconds, by the LLM's configured name.
        sleep: waits for another process (replaced in tests).
    """

    def __init__(
        self,
        store: Store,
        timeouts_s: Mapping[str, float],
        instruments: Instruments,
        sleep: Callable[[float], Awaitable[None]] = asyncio.sleep,
    ) -> None:
        self._store, self._timeouts_s, self._instruments = store, timeouts_s, instruments
        self._sleep = sleep
        self._flights: SingleFlight[tuple[QuestionSet, bool]] = SingleFlight()
        self._writing: dict[str, Context] = {}  # a flight's own, since its first caller may leave

    async def aclose(self) -> None:
        """Stop writing."""
        await self._flights.aclose()

    async def of(
        self, prompt: str, style: Style, llm: Handle | None, context: Context, admitted: bool = False
    ) -> tuple[QuestionSet, CacheStatus]:
        """
        Return the set for *prompt* and its cache status: the LLM's own, an imported one, or a new one.

        Args:
            admitted: True if the request has been admitted with all its prompts.

        Raises:
            LaneFull, Overloaded: the set has to be written, and the LLM is full.
            QuestionLLMFailed: the LLM's answer is bad or late.
            NoQuestions: the LLM found nothing to ask about.
            ModelChanged: the LLM was replaced by another one meanwhile.
            NotReady: the store failed, or the LLM does not serve, or none is configured.
        """
        began = monotonic()
        context.calls.stage = "questions"
        status: CacheStatus = "hit"
        with context.span.child("questions", style=style.name) as span:
            if llm:
                context.use(llm.name, llm.info)
            keys = lookup_keys(prompt, style, llm)
            found = await self._store.find(*keys)
            if found is None:
                if llm is None:
                    reason = "no question set of this prompt was imported"
                    raise NotReady(f"no question LLM is configured, and {reason}")
                key = keys[0]
                if key not in self._writing and not admitted:
                    llm.admit(context, Demand(1, len(prompt)))
                writing = self._writing.setdefault(key, context.for_shared_work(span))
                writing.use(llm.name, context.request.models[llm.name])  # the key names the model
                if writing.span is not span:  # the LLM's call belongs to the first caller's trace
                    span.link(writing.span.traceparent)
                if context.lane == INTERACTIVE:
                    writing.promote()
                llm.shared_by(context, writing)
                write = partial(self._write, keys, prompt, style, llm)
                (found, written), joined = await self._flights.do(key, write)
                status = "miss" if written and not joined else "coalesced"
            span.note(found=status)
        self._instruments.cache_requests.labels("questions", status).inc()
        context.spent("questions", monotonic() - began)
        return found, status

    async def unwritten(self, prompts: Sequence[str], style: Style, llm: Handle) -> list[str]:
        """Return those of *prompts* whose sets are neither stored nor being written.  Raises `NotReady`."""
        missing = []
        for prompt in dict.fromkeys(prompts):  # concurrent reads would queue up
            keys = lookup_keys(prompt, style, llm)
            if keys[0] not in self._writing and await self._store.find(*keys) is None:
                missing.append(prompt)
        return missing

    async def pinned(self, id: str) -> QuestionSet:
        """Return the stored set with that id.  Raises `UnknownQuestionSet`."""
        stored = await self._store.get(id) if id.startswith(ID) else None
        if stored is None:
            raise UnknownQuestionSet(f"no question set {id} is stored here")
        return stored

    async def _write(
        self, keys: Sequence[str], prompt: str, style: Style, llm: Handle
    ) -> tuple[QuestionSet, bool]:
        """Return the set stored under *keys*, and True if this process wrote it."""
        key, context = keys[0], self._writing[keys[0]]
        try:
            with llm.used_by(context):  # a caller that joins may have to be finished before the model goes
                while True:
                    async with self._store.lease(key, self._sleep) as token:
                        if stored := await self._store.find(*keys):
                            return stored, False
                        if token is not None:
                            made = await self._generate(prompt, style, llm, context)
                            with suppress(LeaseLost):
                                return await self._store.put(key, made, token), True
                    await self._sleep(POLL_S)
        finally:
            del self._writing[key]

    async def _generate(self, prompt: str, style: Style, llm: Handle, context: Context) -> QuestionSet:
        """Return a new set; a bad answer is retried if the next one may differ."""
        bad, label = BadAnswer(), llm.info.label
        for seed in range(1 if llm.info.repeatable else LLM_ATTEMPTS):
            try:
                written = await self._attempt(prompt, style, llm, seed, context)
            except BadAnswer as exc:
                bad = exc
            else:
                provenance = {"llm": label, "template": style.hash, "decoding": DECODING}
                return QuestionSet(prompt, style.name, written.questions, provenance, written.unasked)
        raise QuestionLLMFailed(f"the question LLM's answer is not a question set: {bad}") from bad

    async def _attempt(
        self, prompt: str, style: Style, llm: Handle, seed: int, context: Context
    ) -> WrittenQuestions:
        """
        Return the questions of one try.

        Raises:
            BadAnswer: the LLM's answer cannot be parsed, or makes no question set.
            LaneFull, Overloaded, NotReady: the call was refused, or did not start in time.
            CallRefused: the prompt is at fault.
            QuestionLLMFailed: the LLM failed, or did not answer in time.
        """
        timeout_s = self._timeouts_s[llm.name]
        context.deadline = asyncio.get_running_loop().time() + timeout_s
        count = "error"

        async def ask(call: GenerateCall) -> str:
            nonlocal count
            count = "error"
            [result] = await llm.call([replace(call, seed=seed)], context)
            match result:
                case Text(text):
                    count = "invalid"  # the answer counts as invalid until it has been parsed
                    return without_wrapping(text)
                case DeadlineExceeded(stage="queue"):
                    raise no_time(timeout_s)
                case ScoregateError() if isinstance(result, (*REFUSALS, CallRefused)):
                    raise result  # a second try would not help
                case ScoregateError():
                    raise QuestionLLMFailed(result.detail) from result
            raise QuestionLLMFailed("the question LLM's answer is not a text")

        try:
            async with asyncio.timeout_at(context.deadline):
                written = await style.write(ask, prompt)
            written = written._replace(questions=without_zero(written.questions))
            check(written.questions)
            if not written.questions:
                raise NoQuestions("the question LLM found nothing in this prompt to ask about")
            count = "ok"
            return written
        except REFUSALS:
            count = ""  # the LLM was not called
            raise
        except (ValueError, KeyError, TypeError) as exc:
            reason = str(exc) if type(exc) is ValueError else "not JSON of the schema"
            raise BadAnswer(reason) from exc
        except TimeoutError as exc:
            if context.calls.stage == "queue":
                count = ""
                raise no_time(timeout_s) from exc
            raise QuestionLLMFailed(f"the question LLM did not answer within {timeout_s:g} s") from exc
        finally:
            if count:
                self._instruments.question_llm_calls.labels(count).inc()


class BadAnswer(Exception):
    """An answer of the LLM that is not a question set; the message says why."""


def lookup_keys(prompt: str, style: Style, llm: Handle | None) -> list[str]:
    """Return the keys of a prompt's set, in the order of look-up."""
    own = [lookup_key(prompt, style, llm.info.content)] if llm else []
    return [*own, imported_key(prompt, style.name)]


def lookup_key(prompt: str, style: Style, llm: str) -> str:
    """Return a key for everything that the LLM's answer depends on."""
    return digest([prompt, style.name, style.hash, llm, DECODING])


def imported_key(prompt: str, style: str) -> str:
    """Return the key of the set that was imported for a prompt, valid for any LLM."""
    return digest([prompt, style, "imported"])


def digest(recipe: list[str]) -> str:
    """Hash a recipe into a lookup key."""
    return "lookup:" + hashlib.sha256(orjson.dumps(recipe)).hexdigest()


def no_time(timeout_s: float) -> Overloaded:
    """Return the refusal of a set whose call waited in the queue until its time was over."""
    return Overloaded(f"the question LLM was busy with others for {timeout_s:g} s")
