"""
How well the question LLM writes every style, and how well its questions tell right from wrong.

The metrics are restated here in a line or two each, without the service, as the service defines them.
"""

import json
from collections.abc import Callable, Sequence
from functools import cache
from math import exp
from random import Random
from statistics import fmean
from typing import Any

from models.calls import ChoiceCall, FirstTokenCall, GenerateCall, LikelihoodCall
from models.clip_flant5.answers import VqaCall
from models.clip_flant5.model import ClipFlanT5
from models.contract import CHOICE_QUESTION
from models.demo.evaluation import cases
from models.demo.exchanges import ANSWERS, exchange
from models.demo.question_prompts import MIX, any_statement, held_out, typed
from models.demo.styles import STYLES
from models.demo.vqa_questions import ONE_WORD, TRUE_FOR, UNSURE, YES_NO
from models.image import Image
from models.outcomes.text import Text
from models.question_llm.model import QuestionLLM
from models.question_llm.prompt import user_message

Entry = dict[str, Any]
Write = Callable[[str, str], list[Entry]]  # style and prompt to entries

KINDS = ("presence", "binding", "relation")
MAX_TOKENS = 400


def written_right(llm: QuestionLLM, style: str, count: int) -> float:
    """Share of held-out statements, as people type them, whose answer in *style* is right to the letter."""
    random = Random(f"held-out-{style}")
    right = made = 0
    while made < count:
        statement = any_statement(random.choice(MIX), random)
        if held_out(statement):
            made += 1
            message, answer = exchange(style, typed(statement.text, random), statement, random)
            right += answered(llm, message) == answer
    return right / count


def answered(llm: QuestionLLM, message: str) -> str:
    """What the LLM writes, or nothing where it does not come to an end."""
    (outcome,) = llm.score([llm.prepare(GenerateCall("", message, MAX_TOKENS))])
    return outcome.text if isinstance(outcome, Text) else ""


def writer(llm: QuestionLLM) -> Write:
    """The LLM as a writer of entries; every prompt is written about once."""

    @cache
    def write(style: str, prompt: str) -> list[Entry]:
        message = user_message(style, prompt)
        if style == "gecko questions":
            words = [f"{word['id']} {word['text']}" for word in write("gecko", prompt) if word["groundable"]]
            message += f"\nkeywords: {', '.join(words)}"
        entries: list[Entry] = json.loads(answered(llm, message))[STYLES[style][0]]
        return entries

    return write


def closed(question: str) -> str:
    return YES_NO.format(question)


def is_closed(entry: Entry) -> bool:
    return bool(entry["choices"] == ["yes", "no"])


def choose(image: Image, entry: Entry) -> VqaCall:
    """A question with choices as TIFA and Gecko ask it."""
    if is_closed(entry):
        return LikelihoodCall(image, closed(entry["text"]))
    return ChoiceCall(image, CHOICE_QUESTION.format(entry["text"]), tuple(entry["choices"]))


def chances(entry: Entry, outcome: Any) -> dict[str, float]:
    """Of each choice: exp of the mean log-probability of its tokens."""
    if is_closed(entry):
        return {"yes": exp(outcome.log_p_yes), "no": exp(outcome.log_p_no)}
    return {c: exp(fmean(log)) for c, log in zip(entry["choices"], outcome.log_probs, strict=True)}


def yes(outcome: Any) -> bool:
    return bool(outcome.log_p_yes > outcome.log_p_no)


def dsg(entries: Sequence[Entry], outcomes: Sequence[Any]) -> float:
    said = {entry["id"]: yes(outcome) for entry, outcome in zip(entries, outcomes, strict=True)}
    return fmean(said[e["id"]] and all(said[parent] for parent in e["depends_on"]) for e in entries)


def tifa(entries: Sequence[Entry], outcomes: Sequence[Any]) -> float:
    shares = [(entry, chances(entry, outcome)) for entry, outcome in zip(entries, outcomes, strict=True)]
    return fmean(max(chance, key=chance.__getitem__) == entry["answer"] for entry, chance in shares)


def gecko(entries: Sequence[Entry], outcomes: Sequence[Any]) -> float:
    shares = [(entry, chances(entry, outcome)) for entry, outcome in zip(entries, outcomes, strict=True)]
    return fmean(chance[entry["answer"]] / sum(chance.values()) for entry, chance in shares)


def vq2(entries: Sequence[Entry], outcomes: Sequence[Any]) -> float:
    return fmean(exp(outcome.log_p_yes) for outcome in outcomes)


def soft_tifa(entries: Sequence[Entry], outcomes: Sequence[Any]) -> float:
    return fmean(exp(outcome.log_probs[0]) for outcome in outcomes)


def skills(entries: Sequence[Entry], outcomes: Sequence[Any]) -> float:
    firsts = [[log[0] for log in outcome.log_probs] for outcome in outcomes]
    said = [("yes", "no", "unsure")[log.index(max(log))] for log in firsts]
    sure = [word == "yes" for word in said if word != "unsure"]
    return fmean(sure) if sure else 0.0


METRICS: dict[str, tuple[str, Callable[[Image, Entry], VqaCall], Callable[..., float]]] = {
    "dsg": ("dsg", lambda image, e: LikelihoodCall(image, closed(e["text"])), dsg),
    "tifa": ("tifa", choose, tifa),
    "soft_tifa": (
        "tifa",
        lambda image, e: FirstTokenCall(image, ONE_WORD.format(e["text"]), (e["answer"],)),
        soft_tifa,
    ),
    "gecko": ("gecko questions", choose, gecko),
    "vq2": ("vq2", lambda image, e: LikelihoodCall(image, TRUE_FOR.format(e["answer"], e["question"])), vq2),
    "skills": (
        "skills",
        lambda image, e: ChoiceCall(image, UNSURE.format(e["question"]), ("Yes", "No", "Unsure")),
        skills,
    ),
}


def wins(vqa: ClipFlanT5, write: Write, metric: str, kind: str, count: int) -> float:
    """Share of held-out pictures whose right prompt scores strictly above the wrong one."""
    style, ask, fold = METRICS[metric]

    def score(image: Image, prompt: str) -> float:
        try:
            entries = write(style, prompt)
            return fold(entries, vqa.score([vqa.prepare(ask(image, entry)) for entry in entries]))
        except (ValueError, KeyError):  # a set in another form, or an empty one, wins nothing
            return 0.0

    return fmean(score(c.image, c.right) > score(c.image, c.wrong) for c in cases(kind, count))


def report(vqa: ClipFlanT5, llm: QuestionLLM, count: int, say: Callable[[str], None] = print) -> None:
    """Print the two tables of `docs/demo-world.md` that have to do with question styles."""
    say(f"held-out statements, {count} per style: answers that are right to the letter, %")
    for style in (*STYLES, ANSWERS):
        say(f"{style:<18} {100 * written_right(llm, style, count):>6.1f}")
    say(f"held-out scenes, {count} pictures per kind: right prompt above the wrong one, %")
    say(f"{'metric':<10}" + "".join(f"{kind:>10}" for kind in KINDS))
    write = writer(llm)
    for metric in METRICS:
        shares = [100 * wins(vqa, write, metric, kind, count) for kind in KINDS]
        say(f"{metric:<10}" + "".join(f"{share:>10.1f}" for share in shares))
