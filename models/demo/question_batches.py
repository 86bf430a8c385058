"""Batches for the demo question LLM: prompts and answers, several of them packed into a row."""

from collections.abc import Callable
from dataclasses import dataclass
from random import Random

import torch
from tokenizers import Tokenizer

from models.demo.question_prompts import long_pair, pair
from models.demo.question_tokenizer import ASSISTANT, BOS, EOS, SEED, USER
from models.demo.world import SHAPES
from models.question_llm.prompt import user_message

LENGTH, ROWS = 160, 8  # tokens in a packed row, rows in a step
LONG_EVERY = 16  # steps; then long prompts instead
IGNORE = -100


@dataclass(frozen=True, slots=True)
class Batch:
    """
    Packed rows of pairs, each pair blind to its neighbours; (rows, length) but for the mask.

    Attributes:
        ids: token ids.
        labels: the next token where it belongs to an answer, else IGNORE.
        alike: at the second shape word of a prompt, 1 if it is the first again, else 0; IGNORE elsewhere.
        positions: counted from the start of each pair.
        mask: (rows, 1, length, length) True where a token may look.
    """

    ids: torch.Tensor
    labels: torch.Tensor
    alike: torch.Tensor
    positions: torch.Tensor
    mask: torch.Tensor


def make_batch(step: int, words: Tokenizer) -> Batch:
    """The batch of *step*, always the same."""
    random = Random(f"{SEED}-{step}")
    long = step % LONG_EVERY == LONG_EVERY - 1
    length, rows = (2 * LENGTH, ROWS // 2) if long else (LENGTH, ROWS)
    draw = long_pair if long else pair
    packed = torch.tensor([pack(lambda: draw(random), words, length) for _ in range(rows)])
    ids, labels, alike, positions, pairs = packed.unbind(2)
    mask = (pairs[:, :, None] == pairs[:, None]).tril()[:, None]
    return Batch(ids, labels, alike, positions, mask)


def pack(draw: Callable[[], tuple[str, str]], words: Tokenizer, length: int) -> list[tuple[int, ...]]:
    """One row of *length*: (id, label, alike, position, number of the pair) of each token."""
    row: list[tuple[int, ...]] = []
    number = 0
    while True:
        prompt, text = draw()
        asked = words.encode(f"{BOS}{USER}{user_message('dsg', prompt)}{ASSISTANT}").ids
        ids = asked + words.encode(f"{text}{EOS}").ids
        if len(row) + len(ids) > length:
            if row:
                return row + [(0, IGNORE, IGNORE, 0, -1)] * (length - len(row))
            continue
        labels = [IGNORE] * (len(asked) - 1) + ids[len(asked) :] + [IGNORE]
        alike = same_shape(asked, words) + [IGNORE] * (len(ids) - len(asked))
        tokens = zip(ids, labels, alike, range(len(ids)), strict=True)
        row += [(*token, number) for token in tokens]
        number += 1


def same_shape(asked: list[int], words: Tokenizer) -> list[int]:
    """IGNORE for each token of a prompt but the second of two shape words: is it the first again?"""
    names = [words.decode([i]).strip().lower() for i in asked]
    places = [n for n, name in enumerate(names) if name in SHAPES]
    found = [IGNORE] * len(asked)
    if len(places) == 2:
        found[places[1]] = int(names[places[0]] == names[places[1]])
    return found
