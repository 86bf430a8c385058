"""Evaluation of the question LLM in every style.  `make figures` measures the quality of the questions."""

from collections.abc import Callable
from random import Random

from demo.training.exchanges import ANSWERS, exchange
from demo.training.question_prompts import MIX, any_statement, held_out, typed
from demo.training.styles import STYLES
from models.core.calls import GenerateCall
from models.core.outcomes.text import Text
from models.families.question_llm.model import QuestionLLM

MAX_TOKENS = 400


def written_right(llm: QuestionLLM, style: str, count: int) -> float:
    """Return the share of held-out statements whose answer in *style* is exactly right."""
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
    """Return the LLM's answer, empty if it does not end."""
    (outcome,) = llm.score([llm.prepare(GenerateCall("", message, MAX_TOKENS))])
    return outcome.text if isinstance(outcome, Text) else ""


def report(llm: QuestionLLM, count: int, say: Callable[[str], None] = print) -> None:
    """Print a table of the question styles."""
    say(f"held-out statements, {count} per style: answers that are right to the letter, %")
    for style in (*STYLES, ANSWERS):
        say(f"{style:<18} {100 * written_right(llm, style, count):>6.1f}")
