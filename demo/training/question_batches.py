"""Batches for the demo question LLM: prompts and answers, several of them packed into a row."""

import json
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from random import Random

import torch
from tokenizers import Tokenizer

from demo.training.question_prompts import long_pair, pair
from demo.training.question_tokenizer import ASSISTANT, BOS, EOS, SEED, USER
from demo.training.world import SHAPES

LENGTH, ROWS = 256, 8  # tokens in a packed row, rows in a step
LONG_EVERY = 16  # steps; then long prompts instead
IGNORE = -100


@dataclass(frozen=True, slots=True)
class Batch:
    """
    Packed rows of pairs, without attention between pairs; (rows, length) except for the mask.

    Attributes:
        ids: token ids.
        labels: the next token if it belongs to an answer, else IGNORE.
        alike: at the second shape word of a prompt, 1 if it equals the first, else 0; IGNORE elsewhere.
        own: at the end of each question to answer, 1 if it is one of the prompt's own, else 0.
        positions: counted from the start of each pair.
        mask: (rows, 1, length, length) True where a token may attend.
    """

    ids: torch.Tensor
    labels: torch.Tensor
    alike: torch.Tensor
    own: torch.Tensor
    positions: torch.Tensor
    mask: torch.Tensor


def make_batch(step: int, words: Tokenizer, calls: Sequence[str]) -> Batch:
    """Return the batch of *step*, deterministic."""
    random = Random(f"{SEED}-{step}")
    long = step % LONG_EVERY == LONG_EVERY - 1
    length, rows = (2 * LENGTH, ROWS // 2) if long else (LENGTH, ROWS)

    def draw() -> tuple[str, str]:
        return long_pair(random) if long else pair(random, calls)

    packed = torch.tensor([pack(draw, words, length) for _ in range(rows)])
    ids, labels, alike, own, positions, pairs = packed.unbind(2)
    mask = (pairs[:, :, None] == pairs[:, None]).tril()[:, None]
    return Batch(ids, labels, alike, own, positions, mask)


def pack(draw: Callable[[], tuple[str, str]], words: Tokenizer, length: int) -> list[tuple[int, ...]]:
    """Return one row of *length*: (id, label, alike, own, position, number of the pair) of each token."""
    row: list[tuple[int, ...]] = []
    number = 0
    while True:
        message, text = draw()
        asked = words.encode(f"{BOS}{USER}{message}{ASSISTANT}").ids
        ids = asked + words.encode(f"{text}{EOS}").ids
        if len(row) + len(ids) > length:
            if row:
                return row + [(0, IGNORE, IGNORE, IGNORE, 0, -1)] * (length - len(row))
            continue
        labels = [IGNORE] * (len(asked) - 1) + ids[len(asked) :] + [IGNORE]
        names = [words.decode([i]).strip(" ").lower() for i in asked]
        rest = [IGNORE] * (len(ids) - len(asked))
        alike, own = same_shape(names) + rest, own_questions(names, text) + rest
        tokens = zip(ids, labels, alike, own, range(len(ids)), strict=True)
        row += [(*token, number) for token in tokens]
        number += 1


def end_of_prompt(names: list[str]) -> int:
    """Return the end of the line with the prompt; *names* are a message's tokens."""
    breaks = [n for n, name in enumerate(names) if name == "\n"]  # ahead of the prompt and behind it
    return breaks[1] if len(breaks) > 1 else len(names)


def same_shape(names: list[str]) -> list[int]:
    """Return the label `alike` at the second shape word of a prompt, IGNORE for all other tokens."""
    places = [n for n, name in enumerate(names[: end_of_prompt(names)]) if name in SHAPES]
    found = [IGNORE] * len(names)
    if len(places) == 2:
        found[places[1]] = int(names[places[0]] == names[places[1]])
    return found


def own_questions(names: list[str], answer: str) -> list[int]:
    """
    Return the label `own` at the end of each question that *answer* answers, IGNORE for all other tokens.
    """
    found = [IGNORE] * len(names)
    if answer.startswith('{"answers"'):
        ends = [n for n, name in enumerate(names) if name == "?" and n > end_of_prompt(names)]
        for place, said in zip(ends, json.loads(answer)["answers"], strict=True):
            found[place] = int(said not in ("no", "unknown"))
    return found
