"""What `--check` says of a question LLM that runs through transformers."""

from collections.abc import Iterator
from pathlib import Path

from models.checkpoints.files import weight_files
from models.checkpoints.plan import plan_model, total
from models.core.contract import Prepared
from models.core.family import Plan
from models.families.question_llm import QuestionLLMSettings
from models.families.question_llm.model import QuestionLLM, load


def plan(settings: QuestionLLMSettings) -> Plan:
    """What would be loaded.  Raises what `plan_model` does."""
    return plan_model(settings, count, load, lambda llm, _: largest(llm))


def largest(llm: QuestionLLM) -> Iterator[list[Prepared]]:
    """
    A chat as long as the example's and the longest answer together, and one token of answer.

    That holds as many keys and values as the end of such an answer, and activations of more tokens.
    """
    cost = llm.prepare(llm.example()).cost
    yield [Prepared(cost, ([0] * cost, 1, None))]


def count(directory: Path) -> int:
    """How many numbers the weights hold."""
    return total(weight_files(directory))
