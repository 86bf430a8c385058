"""Get the question set of a prompt: stored, being written already, or written now."""

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
from service.core.concurrency.single_flight import SingleFlight
from service.core.errors import (
    REFUSALS,
    CallRefused,
    DeadlineExceeded,
    NoQuestions,
    NotReady,
    Overloaded,
    QuestionLLMFailed,
    Replaced,
    ScoregateError,
    UnknownQuestionSet,
)
from service.core.lanes import INTERACTIVE
from service.observability.instruments import Instruments
from service.observability.tracing.span import Span
from service.questions.leases import leased
from service.questions.sets import QuestionSet, check
from service.questions.stores.contract import LeaseLost, Store
from service.questions.style import Style, Written
from service.serving.context import CacheStatus, Context
from service.serving.demand import Demand
from service.serving.handle import Handle

DECODING = "greedy"
TRIES = 2  # of a model that may answer otherwise when it is asked once more
POLL_S = 0.1  # between two looks at what another process writes


class QuestionWriter:
    """
    Question sets by prompt; each is written once, however many requests arrive together.

    Of the processes that share the store, one writes; the others wait for it, and take over should it end.

    Args:
        timeouts_s: seconds for one set, by the LLM's configured name.
        sleep: how to wait for another process (tests).
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
        self._writing: dict[str, Context] = {}  # of each flight: its own, since its first caller may leave

    async def aclose(self) -> None:
        """Stop writing."""
        await self._flights.aclose()

    async def of(
        self, prompt: str, style: Style, llm: Handle | None, context: Context
    ) -> tuple[QuestionSet, CacheStatus]:
        """
        The set for *prompt* and how it was found: the LLM's own, else an imported one, else one written now.

        Raises:
            LaneFull, Overloaded: it has to be written, and the LLM takes no more.
            QuestionLLMFailed: the LLM answered badly or too late.
            NoQuestions: it found nothing to ask.
            NotReady: the store failed, or the LLM does not serve, or there is none.
        """
        began = monotonic()
        context.stage = "questions"
        with context.span.child("questions", style=style.name) as span:
            while True:
                with suppress(Replaced):  # the LLM that the keys name is gone: looked for under the new one's
                    stored, found = await self._of(prompt, style, llm, context, span)
                    break
            span.note(found=found)
        self._instruments.cache_requests.labels("questions", found).inc()
        context.spent("questions", monotonic() - began)
        return stored, found

    async def _of(
        self, prompt: str, style: Style, llm: Handle | None, context: Context, span: Span
    ) -> tuple[QuestionSet, CacheStatus]:
        """What `of` returns and raises, and `Replaced`; *span* is of this one caller."""
        keys, identity = lookup_keys(prompt, style, llm), llm.info.identity if llm else ()
        stored = await self._store.find(*keys)
        found: CacheStatus = "hit"
        if stored is None:
            if llm is None:
                raise NotReady(
                    "no question LLM is configured, and no question set of this prompt was imported"
                )
            key = keys[0]
            if key not in self._writing:
                llm.admit(context, Demand(1, len(prompt)))
            writing = self._writing.setdefault(key, context.for_shared_work(span))
            if writing.span is not span:  # the LLM's call is in the trace of whoever came first
                span.link(writing.span.traceparent)
            if context.lane == INTERACTIVE:
                writing.promote()
            write = partial(self._write, keys, prompt, style, llm, identity)
            (stored, written), joined = await self._flights.do(key, write)
            found = "miss" if written and not joined else "coalesced"
        return stored, found

    async def unwritten(self, prompts: Sequence[str], style: Style, llm: Handle) -> list[str]:
        """Those of *prompts* whose sets are neither stored nor being written.  Raises `NotReady`."""
        missing = []
        for prompt in dict.fromkeys(prompts):  # one after the other: together they would wait for each other
            keys = lookup_keys(prompt, style, llm)
            if keys[0] not in self._writing and await self._store.find(*keys) is None:
                missing.append(prompt)
        return missing

    async def pinned(self, id: str) -> QuestionSet:
        """The stored set with that id.  Raises `UnknownQuestionSet`."""
        stored = await self._store.get(id) if id.startswith("sha256:") else None
        if stored is None:
            raise UnknownQuestionSet(f"no question set {id} is stored here")
        return stored

    async def _write(
        self, keys: Sequence[str], prompt: str, style: Style, llm: Handle, identity: tuple[str, ...]
    ) -> tuple[QuestionSet, bool]:
        """
        The set that comes to be stored under *keys*, and whether it was written by this process.

        Raises `Replaced` where another LLM took the place of the one that *keys* name.
        """
        key = keys[0]
        try:
            while True:
                async with leased(self._store, key, self._sleep) as token:
                    if stored := await self._store.find(*keys):
                        return stored, False
                    if token is not None:
                        made = await self._made(prompt, style, llm, self._writing[key])
                        if llm.info.identity != identity:
                            raise Replaced
                        with suppress(LeaseLost):
                            return await self._store.put(key, made, token), True
                await self._sleep(POLL_S)
        finally:
            del self._writing[key]

    async def _made(self, prompt: str, style: Style, llm: Handle, context: Context) -> QuestionSet:
        """A new set."""
        written = await self._written(prompt, style, llm, context)
        provenance = {"llm": llm.info.label, "template": style.hash, "decoding": DECODING}
        return QuestionSet(prompt, style.name, written.questions, provenance, written.unasked)

    async def _written(self, prompt: str, style: Style, llm: Handle, context: Context) -> Written:
        """Questions, asked for once more where the first answer is bad and another may differ."""
        bad = BadAnswer()
        for seed in range(1 if llm.info.repeatable else TRIES):
            try:
                return await self._attempt(prompt, style, llm, seed, context)
            except BadAnswer as exc:
                bad = exc
        raise QuestionLLMFailed(f"the question LLM's answer is not a question set: {bad}") from bad

    async def _attempt(self, prompt: str, style: Style, llm: Handle, seed: int, context: Context) -> Written:
        """
        The questions of one try.

        Raises:
            BadAnswer: the LLM answered with something else.
            LaneFull, Overloaded, NotReady: it was not asked, or not in time.
            QuestionLLMFailed: it failed, or did not answer in time.
        """
        timeout_s = self._timeouts_s[llm.name]
        context.deadline = asyncio.get_running_loop().time() + timeout_s
        result = "error"

        async def ask(call: GenerateCall) -> str:
            nonlocal result
            result = "error"
            text = await generated(llm, replace(call, seed=seed), context, timeout_s)
            result = "invalid"  # until it has been read
            return text

        try:
            async with asyncio.timeout_at(context.deadline):
                written = checked(await style.written(ask, prompt))
            result = "ok"
            return written
        except REFUSALS:
            result = ""  # it was never asked
            raise
        except (ValueError, KeyError, TypeError) as exc:
            reason = str(exc) if type(exc) is ValueError else "not the JSON that was asked for"
            raise BadAnswer(reason) from exc
        except TimeoutError as exc:
            if context.stage == "queue":
                result = ""
                raise no_time(timeout_s) from exc
            raise QuestionLLMFailed(f"the question LLM did not answer within {timeout_s:g} s") from exc
        finally:
            if result:
                self._instruments.question_llm_calls.labels(result).inc()


class BadAnswer(Exception):
    """The LLM answered with something that is not a question set; the message says why."""


def lookup_keys(prompt: str, style: Style, llm: Handle | None) -> list[str]:
    """Where the set of a prompt is looked for, one after the other."""
    own = [lookup_key(prompt, style, llm.info.label)] if llm else []
    return [*own, imported_key(prompt, style.name)]


def lookup_key(prompt: str, style: Style, llm: str) -> str:
    """Names a request for a set: everything the answer depends on."""
    return digest([prompt, style.name, style.hash, llm, DECODING])


def imported_key(prompt: str, style: str) -> str:
    """Names the set that was imported for a prompt; it holds whichever LLM there is."""
    return digest([prompt, style, "imported"])


def digest(recipe: list[str]) -> str:
    """A lookup key."""
    return "lookup:" + hashlib.sha256(orjson.dumps(recipe)).hexdigest()


def checked(written: Written) -> Written:
    """Questions that make a set.  Raises `ValueError`, or `NoQuestions` where there are none."""
    check(written.questions)
    if not written.questions:
        raise NoQuestions("the question LLM found nothing in this prompt to ask about")
    return written


def no_time(timeout_s: float) -> Overloaded:
    """The refusal of a set that waited behind others until its time was over."""
    return Overloaded(f"the question LLM was busy with others for {timeout_s:g} s")


async def generated(llm: Handle, call: GenerateCall, context: Context, timeout_s: float) -> str:
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
    if isinstance(outcome, DeadlineExceeded) and outcome.stage == "queue":
        raise no_time(timeout_s)
    match outcome:
        case ScoregateError():
            raise QuestionLLMFailed(outcome.detail) from outcome
        case Text(text):
            return text
    raise QuestionLLMFailed("the question LLM's answer is not a text")
