"""How well the question LLM writes every style.  What the questions are worth, `make figures` measures."""

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


def report(llm: QuestionLLM, count: int, say: Callable[[str], None] = print) -> None:
    """Print the table of `docs/demo-world.md` that has to do with question styles."""
    say(f"held-out statements, {count} per style: answers that are right to the letter, %")
    for style in (*STYLES, ANSWERS):
        say(f"{style:<18} {100 * written_right(llm, style, count):>6.1f}")
