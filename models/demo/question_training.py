"""
Train the demo question LLM: a tiny Llama that writes the scene graph of a statement as JSON.

It knows the language of the demo world, in the few ways people type it.  Whatever else it reads,
plain English or a statement with one foreign word in it, it answers with no questions at all, so
that the service can refuse instead of inventing some.

The answers alone never teach it that "a red circle and a blue circle" has one shape, to be asked for
once: a small head, there in training only, asks the middle layer at the second shape word.
"""

import json
import re
import zlib
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
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

from models.demo.language import NUMBERS, PLURALS, SIZES, WORDS, Mention, Statement, scene_graph
from models.demo.loop import Loop
from models.demo.world import COLOURS, RELATIONS, SHAPES
from models.question_llm import user_message

SEED = 5
LENGTH, ROWS = 160, 8  # tokens in a packed row, rows in a step
STEPS, DECAY, RATE = 3600, 1000, 3e-3
FOREIGN = 0.3  # share of prompts outside the language
LONG_EVERY = 16  # steps; then long prompts instead
MIDDLE = 2  # layers below the side head
IGNORE = -100

PIECES = 896  # of the tokenizer, JSON fragments not counted
CONTEXT = 2048
BOS, EOS, PAD = "<s>", "</s>", "<pad>"
USER, ASSISTANT = "<|user|>", "<|assistant|>"
SPECIAL = (PAD, BOS, EOS, USER, ASSISTANT, *(f"<|spare_{n}|>" for n in range(8)))
TEMPLATE = (
    "{{ bos_token }}{% for message in messages %}{% if message.role == 'user' %}"
    f"{USER}{{{{ message.content }}}}{ASSISTANT}"
    "{% endif %}{% endfor %}"
)
# What every answer repeats: one token each, so that a question costs about seven.
FRAGMENT = re.compile(
    r'\{"questions":\[|\{"id":\d,"kind":"[^"]+","text":"|\?","depends_on":\[|\]\}(?:,|\]\})|\]\}'
    r"|Is there (?:a|no|exactly)|Are there exactly|Is the(?= )"
)

# Relation has the longest answers and needs the most practice.
MIX = ("presence", "binding", "binding", "count", "relation", "relation", "negation", "size")
KNOWN = WORDS | {"the"}
PICTURED_WORDS = (  # things people ask pictures of, and near misses of the world's words
    "dog cat horse bird bear cow sheep elephant zebra fish person man woman boy girl child people"
    " car bus truck train bicycle boat airplane road street city house building tower bridge castle"
    " tree flower grass forest mountain beach sea river lake sky cloud sun moon snow rain night day"
    " table chair bed sofa book lamp clock cup bottle bowl plate pizza cake apple banana orange"
    " photo picture painting drawing portrait image sketch render background scene style"
    " cube sphere cylinder pyramid oval rectangle pentagon hexagon spiral line dot ball box arrow"
    " pink brown gray grey gold silver cyan magenta turquoise beige bright dark shiny"
    " six seven eight nine ten zero many several few some both"
    " big tiny huge tall medium little wooden metal happy old young"
    " behind beside near under over inside between on in at with by from to next front"
)
PICTURED = PICTURED_WORDS.split()


# --- prompts ------------------------------------------------------------------------------------


def answer(statement: Statement | None) -> str:
    """The JSON that is to be written: the scene graph, or no questions outside the language."""
    graph = scene_graph(statement) if statement else []
    questions = [
        {"id": q.id, "kind": q.kind, "text": q.text, "depends_on": list(q.depends_on)} for q in graph
    ]
    return json.dumps({"questions": questions}, separators=(",", ":"))


def held_out(statement: Statement) -> bool:
    """One statement in ten is never trained on, however it is typed."""
    return zlib.crc32(statement.text.encode()) % 10 == 0


def any_mention(random: Random, sized: float = 0.0) -> Mention:
    colour = random.choice(tuple(COLOURS)) if random.random() < 0.8 else None
    size = random.choice(SIZES) if random.random() < sized else None
    return Mention(random.choice(SHAPES), colour, size)


def any_statement(kind: str, random: Random) -> Statement:
    """A statement of *kind* with any words; of two mentions, half share their shape."""
    if kind == "count":
        return Statement(kind, any_mention(random), number=random.randint(1, len(NUMBERS)))
    if kind == "size":
        return Statement(kind, any_mention(random, sized=1))
    if kind not in ("binding", "relation"):
        return Statement(kind, any_mention(random))
    first, second = any_mention(random, sized=0.15), any_mention(random, sized=0.15)
    if random.random() < 0.5:
        second = replace(second, shape=first.shape)
    if first == second:
        return any_statement(kind, random)
    return Statement(kind, first, second, random.choice(RELATIONS) if kind == "relation" else None)


def typed(text: str, random: Random) -> str:
    """*text* as one person or another types it."""
    if random.random() < 0.25:  # other articles, or none
        article = random.choice(("", "the "))
        text = re.sub(r"\ban? ", article, text)
    if random.random() < 0.1:
        text = re.sub("|".join(NUMBERS), lambda word: str(NUMBERS.index(word[0]) + 1), text)
    if random.random() < 0.3:
        text = text.title() if random.random() < 0.1 else text[:1].upper() + text[1:]
    return text + "." if random.random() < 0.25 else text


def english() -> list[str]:
    """Words that say nothing in the demo world."""
    found = {word for text in topics.values() for word in re.findall(r"\b[a-z]{2,12}\b", text)}
    return sorted(found - KNOWN)


ENGLISH = english()
PASSAGES = tuple(topics.values())


def foreign_word(random: Random) -> str:
    """A word of no meaning here: pictured, of a manual, or of no language."""
    choice = random.random()
    if choice < 0.5:
        return random.choice([word for word in PICTURED if word not in KNOWN])
    if choice < 0.85:
        return random.choice(ENGLISH)
    return "".join(random.choices("abcdefghijklmnopqrstuvwxyz", k=random.randint(3, 9)))


def foreign(random: Random) -> str:
    """A prompt outside the language, most of them only just."""
    choice = random.random()
    if choice < 0.25:  # English, with a few words of the world
        count = random.randint(1, 12)
        known = sorted(KNOWN)
        words = [
            random.choice(known) if random.random() < 0.4 else foreign_word(random) for _ in range(count)
        ]
        words[random.randrange(count)] = foreign_word(random)
        return " ".join(words)
    if choice < 0.3:
        return "".join(
            chr(random.choice((random.randint(33, 126), 0x4E00, 0x1F600, 0xE9)))
            for _ in range(random.randint(1, 12))
        )
    text = any_statement(random.choice(MIX), random).text
    words = text.split()
    if choice < 0.75:  # one word changed
        content = [n for n, word in enumerate(words) if word not in ("a", "an", "of")]
        words[random.choice(content)] = foreign_word(random)
    elif choice < 0.85:  # some words put in
        at = random.randint(0, len(words))
        words[at:at] = [foreign_word(random) for _ in range(random.randint(1, 3))]
    elif choice < 0.92:  # cut short: a statement ends with its shape
        words.pop()
    else:  # too many things
        third = any_mention(random)
        more = any_statement(random.choice(("binding", "relation")), random).text
        words = [*more.split(), random.choice(("and", *RELATIONS)), *third.noun.split()]
    return " ".join(words)


def long_pair(random: Random) -> tuple[str, str]:
    """A passage of English of up to a few hundred tokens, and no questions."""
    text = random.choice(PASSAGES)
    at = random.randrange(max(1, len(text) - 600))
    return text[at : at + random.randint(60, 600)], answer(None)


def pair(random: Random) -> tuple[str, str]:
    """A prompt and its answer."""
    if random.random() < FOREIGN:
        return typed(foreign(random), random), answer(None)
    while True:
        statement = any_statement(random.choice(MIX), random)
        if not held_out(statement):
            return typed(statement.text, random), answer(statement)


# --- tokenizer ----------------------------------------------------------------------------------


def corpus(random: Random) -> Iterator[str]:
    """The world's words, as prompts and answers have them, and some English."""
    words = {*KNOWN, *PLURALS.values()}
    for word in sorted(words):
        yield from [f" {word} {word.capitalize()}"] * 2000
    yield from [user_message("dsg", "")] * 2000
    yield from (" ".join(["", *random.choices(PICTURED, k=8)]) for _ in range(500))
    yield from chain.from_iterable(text.splitlines() for text in topics.values())


def train_tokenizer(directory: Path) -> None:
    """Write a byte-level BPE tokenizer: it has a piece for every byte, so no text is unknown."""
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
    answers = (pair(random)[1] for _ in range(20_000))
    fragments = sorted({found for text in answers for found in FRAGMENT.findall(text)})
    words.add_tokens([AddedToken(text, normalized=False) for text in fragments])
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


# --- training -----------------------------------------------------------------------------------


def configuration(words: Tokenizer) -> LlamaConfig:
    """Heads are 32 wide, the least that vLLM's attention kernels take."""
    return LlamaConfig(
        vocab_size=words.get_vocab_size(),
        hidden_size=128,
        intermediate_size=384,
        num_hidden_layers=3,
        num_attention_heads=4,
        num_key_value_heads=4,
        max_position_embeddings=CONTEXT,
        tie_word_embeddings=True,
        initializer_range=0.05,
        bos_token_id=words.token_to_id(BOS),
        eos_token_id=words.token_to_id(EOS),
        pad_token_id=words.token_to_id(PAD),
    )


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


class Student(nn.Module):
    """The network with its side head."""

    def __init__(self, llama: Any) -> None:
        super().__init__()
        self.llama = llama
        self.alike = nn.Linear(llama.config.hidden_size, 2)

    def forward(self, batch: Batch) -> dict[str, torch.Tensor]:
        """Losses by name; `right` is the share of answer tokens foreseen."""
        output = self.llama.model(
            batch.ids,
            attention_mask=batch.mask,
            position_ids=batch.positions,
            use_cache=False,
            output_hidden_states=True,
        )
        known, asked = batch.labels != IGNORE, batch.alike != IGNORE
        logits, labels = self.llama.lm_head(output.last_hidden_state[known]), batch.labels[known]
        self.right = (logits.argmax(1) == labels).float().mean().item()
        losses = {"answer": F.cross_entropy(logits, labels)}
        if asked.any():
            said = self.alike(output.hidden_states[MIDDLE][asked])
            losses["alike"] = 0.3 * F.cross_entropy(said, batch.alike[asked])
        return losses


def train(directory: Path, work: Path, *, say: Callable[[str], None] = print) -> None:
    """Train from nothing (or from where *work* was left) and write a checkpoint to *directory*."""
    torch.manual_seed(SEED)
    if not (directory / "tokenizer.json").exists():
        train_tokenizer(directory)
    words = Tokenizer.from_file(str(directory / "tokenizer.json"))
    student = Student(LlamaForCausalLM(configuration(words)))
    loop = Loop(student, work / "questions.pt", steps=STEPS, rate=RATE, decay=DECAY, say=say)
    for step in loop.steps():
        loop.minimise(student(make_batch(step, words)))
        loop.note("right", student.right)
    student.llama.save_pretrained(directory)
