"""
Train the demo question LLM: a tiny Llama that writes questions about a statement as JSON, in every style.

It supports the language of the demo world, in a few ways of typing.  For all other prompts, plain English
or a statement with one foreign word, it returns no questions, so that the service can refuse them.

Answers alone never teach it that "a red circle and a blue circle" has one shape, which needs one question:
a small head, used in training only, predicts this from the middle layer at the second shape word.

They also teach it too slowly that "Is the circle blue?" does not fit "a red circle".  So in a second stage
half of the samples are answers to questions about prompts, and another head predicts if a question fits.
"""

import json
import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import chain
from pathlib import Path
from pydoc_data.topics import topics  # ordinary English that every Python carries
from random import Random
from typing import Any

import torch
from tokenizers import AddedToken, Tokenizer, decoders, models, pre_tokenizers, trainers
from torch import nn
from torch.nn import functional as F
from transformers import LlamaConfig, LlamaForCausalLM

from demo.training.language import PLURALS
from demo.training.loop import Loop, Stage
from demo.training.question_prompts import CALLS, DESCRIBED, KNOWN, READING_CALLS, long_pair, pair
from demo.training.world import SHAPES
from models.families.question_llm import user_message

SEED = 5  # the seed of the tokenizer, the batches and the weights

PIECES = 896  # pieces of the tokenizer, JSON fragments not counted
CONTEXT = 2048
BOS, EOS, PAD = "<s>", "</s>", "<pad>"
USER, ASSISTANT = "<|user|>", "<|assistant|>"
SPECIAL = (PAD, BOS, EOS, USER, ASSISTANT, *(f"<|spare_{n}|>" for n in range(8)))
TEMPLATE = (
    "{{ bos_token }}{% for message in messages %}{% if message.role == 'user' %}"
    f"{USER}{{{{ message.content }}}}{ASSISTANT}"
    "{% endif %}{% endfor %}"
)
# Parts of an answer that depend on the prompt.  The repeated text between them is one token at each entry's
# beginning and one at its end, so that a question costs five or six.
SAID = re.compile(
    "|".join(f'(?<="{key}":")[^"?)]*' for key in ("text", "entity", "tuple", "question", "phrase"))
    + '|(?<="answer":")(?!yes")[^"]*'
)
CUT = re.compile(r"(?<=\},)|(?<=\[)(?=\{)|(?=\]\}$)")
# Common parts of questions, tuples and lists of answers are one token each, too.
COMMON = re.compile(
    r"Is there (?:a|no|exactly)\b|Are there exactly|Is the\b|What (?:color|size) is the|How many|are there"
    r"|Where is the|relative to the|What (?:else )?is (?:there|missing)|\w+ - \w+ \("
    r'|(?<=\? )[^?;"]+(?=;|$)|\{"answers":\["|(?<=\w)","(?=\w)|"\]\}$'
)
LENGTH, ROWS = 256, 8  # tokens in a packed row, rows in a step
LONG_EVERY = 16  # steps; then long prompts instead
IGNORE = -100
WRITING = Stage(10_000, 3e-3, 3500)
READING, READING_AGAIN = Stage(4000, 2e-3, 1200), Stage(3500, 1e-3, 2500)
MIDDLE, READ = 2, 3  # layers below the side heads


def fragments(message: str, answer: str) -> set[str]:
    """Return the texts of a call that should be one token each."""
    found = {*COMMON.findall(message), *COMMON.findall(answer)}
    if not answer.startswith('{"answers"'):
        found |= {piece for text in SAID.split(answer) for piece in CUT.split(text) if piece}
    return found


def corpus(random: Random) -> Iterator[str]:
    """Yield the world's words, as prompts and answers have them, and some English."""
    words = {*KNOWN, *PLURALS.values(), "yes", "unknown"}
    for word in sorted(words):
        yield from [f' {word} {word.capitalize()} "{word}"'] * 2000
    yield from [user_message(style, "") for style in CALLS] * 2000
    yield from [f"\nkeywords:\nquestions:\ntuples: {n}" for n in range(1, 13)] * 500
    yield from (" ".join(["", *random.choices(DESCRIBED, k=8)]) for _ in range(500))
    yield from chain.from_iterable(text.splitlines() for text in topics.values())


def train_tokenizer(directory: Path) -> None:
    """Write a byte-level BPE tokenizer, which has a token for every byte, so no text is unknown."""
    random = Random(SEED)
    words = Tokenizer(models.BPE())
    words.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    words.decoder = decoders.ByteLevel()
    trainer = trainers.BpeTrainer(
        vocab_size=PIECES,
        special_tokens=list(SPECIAL),
        initial_alphabet=pre_tokenizers.ByteLevel.alphabet(),
        show_progress=False,
    )
    words.train_from_iterator(corpus(random), trainer)
    found = set[str]().union(*(fragments(*pair(random)) for _ in range(20_000)))
    words.add_tokens([AddedToken(text, normalized=False) for text in sorted(found)])
    config = {
        "tokenizer_class": "PreTrainedTokenizerFast",
        "model_max_length": CONTEXT,
        "clean_up_tokenization_spaces": False,
        "bos_token": BOS,
        "eos_token": EOS,
        "pad_token": PAD,
        "chat_template": TEMPLATE,
    }
    directory.mkdir(parents=True, exist_ok=True)
    words.save(str(directory / "tokenizer.json"))
    (directory / "tokenizer_config.json").write_text(json.dumps(config, indent=2) + "\n")


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


def configuration(words: Tokenizer) -> LlamaConfig:
    """Return a configuration with heads 32 wide, the minimum of vLLM's attention kernels."""
    return LlamaConfig(
        vocab_size=words.get_vocab_size(),
        hidden_size=128,
        intermediate_size=384,
        num_hidden_layers=4,
        num_attention_heads=4,
        num_key_value_heads=4,
        max_position_embeddings=CONTEXT,
        tie_word_embeddings=True,
        initializer_range=0.05,
        bos_token_id=words.token_to_id(BOS),
        eos_token_id=words.token_to_id(EOS),
        pad_token_id=words.token_to_id(PAD),
    )


class Student(nn.Module):
    """The network with its side head."""

    def __init__(self, llama: Any) -> None:
        super().__init__()
        self.llama = llama
        self.alike = nn.Linear(llama.config.hidden_size, 2)

    def forward(self, batch: Batch) -> dict[str, torch.Tensor]:
        """Return losses by name; `right` is the share of answer tokens predicted."""
        output = self.llama.model(
            batch.ids,
            attention_mask=batch.mask,
            position_ids=batch.positions,
            use_cache=False,
            output_hidden_states=True,
        )
        self.states = output.hidden_states
        known, asked = batch.labels != IGNORE, batch.alike != IGNORE
        logits, labels = self.llama.lm_head(output.last_hidden_state[known]).float(), batch.labels[known]
        self.right = (logits.argmax(1) == labels).float().mean().item()
        losses = {"answer": F.cross_entropy(logits, labels)}
        if asked.any():
            said = self.alike(self.states[MIDDLE][asked])
            losses["alike"] = 0.3 * F.cross_entropy(said.float(), batch.alike[asked])
        return losses


class Reader(Student):
    """The student of the second stage, with an additional head."""

    def __init__(self, student: Student) -> None:
        super().__init__(student.llama)
        self.alike = student.alike
        self.own = nn.Linear(student.llama.config.hidden_size, 2)

    def forward(self, batch: Batch) -> dict[str, torch.Tensor]:
        """Return the losses, with one for whether each question fits the prompt."""
        losses = super().forward(batch)
        asked = batch.own != IGNORE
        if asked.any():
            said = self.own(self.states[READ][asked]).float()
            losses["own"] = F.cross_entropy(said, batch.own[asked])
        return losses


def train(directory: Path, work: Path, *, say: Callable[[str], None] = print) -> None:
    """Train from scratch (or resume from *work*) and write a checkpoint to *directory*."""
    torch.manual_seed(SEED)
    if not (directory / "tokenizer.json").exists():
        train_tokenizer(directory)
    words = Tokenizer.from_file(str(directory / "tokenizer.json"))
    student = Student(LlamaForCausalLM(configuration(words)))
    loop = Loop(student, work / "questions.pt", WRITING, say=say)
    practise(student, loop, lambda step: make_batch(step, words, CALLS))
    reader, done = Reader(student), WRITING.steps
    for name, stage in (("reading", READING), ("reading-again", READING_AGAIN)):
        loop = Loop(reader, work / f"{name}.pt", stage, say=say)
        practise(reader, loop, partial(make_reading, done, words))
        done += stage.steps
    student.llama.save_pretrained(directory)


def make_reading(done: int, words: Tokenizer, step: int) -> Batch:
    """Return a batch of the stages for reading, after *done* earlier steps."""
    return make_batch(done + step, words, READING_CALLS)


def practise(student: Student, loop: Loop, make: Callable[[int], Batch]) -> None:
    """Run all steps of a stage."""
    for step in loop.steps():
        with torch.autocast("cpu", torch.bfloat16):
            losses = student(make(step))
        loop.minimise(losses)
        loop.note("right", student.right)
