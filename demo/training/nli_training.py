"""
Train the demo NLI model: a tiny BERT that decides if a prompt entails a question with its answer.

Its vocabulary is the language of the demo world.  All other words are one unknown token, and a text that
contains it is never entailed.

A pair of a premise and a hypothesis is right if the prompt entails it.  A wrong one has another answer, or is
about another thing; most of them are one word from right.
"""

import json
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from random import Random

import torch
from tokenizers import Tokenizer, models, normalizers, pre_tokenizers, processors
from torch.nn import functional as F
from transformers import BertConfig, BertForSequenceClassification

from demo.training.exchanges import reworded
from demo.training.facts import ask_openly, mentions, open_question
from demo.training.language import WORDS, Mention, Statement, scene_graph
from demo.training.loop import Loop, Stage
from demo.training.question_prompts import MIX, any_statement, foreign_word, held_out, typed
from demo.training.world import RELATIONS

RIGHT = 0.5  # share of the tries
OPPOSITE = {
    one: other
    for a, b in zip(RELATIONS[::2], RELATIONS[1::2], strict=True)
    for one, other in ((a, b), (b, a))
}
SEED = 11  # the seed of the batches and the weights
STAGE, ROWS = Stage(3600, 1.5e-3, 1400), 64
LENGTH = 64  # tokens of a premise and a hypothesis
PAD, UNKNOWN, START, END = "[PAD]", "[UNK]", "[CLS]", "[SEP]"
ASKING = "the is are there what where how many color size relative to exactly yes ? . , 1 2 3 4 5"
LABELS = {0: "not_entailment", 1: "entailment"}


@dataclass(frozen=True, slots=True)
class Pair:
    """A prompt, a question with its answer, and True if the prompt entails it."""

    premise: str
    hypothesis: str
    entailed: bool


def draw(random: Random, *, unseen: bool = False) -> Pair:
    """Sample a pair about any statement, or about an *unseen* one that is never trained on."""
    while True:
        statement = any_statement(random.choice(MIX), random)
        if held_out(statement) is not unseen:
            continue
        hypothesis = right(statement, random) if random.random() < RIGHT else wrong(statement, random)
        if hypothesis is not None:
            return Pair(typed(statement.text, random), *hypothesis)


def right(statement: Statement, random: Random) -> tuple[str, bool]:
    """Sample a question that *statement* answers, with that answer."""
    question = random.choice(scene_graph(statement))
    asked = open_question(question.asks, statement)
    if asked is not None and random.random() < 0.5:
        return f"{asked.text} {asked.answer}", True
    return f"{question.text} yes", True


def wrong(statement: Statement, random: Random) -> tuple[str, bool] | None:
    """Sample a question with an answer that *statement* does not entail; None if this try found none."""
    choice = random.random()
    if choice < 0.1:
        return f"{random.choice(scene_graph(statement)).text} no", False
    if choice < 0.2:
        words = right(statement, random)[0].split()
        words[random.randrange(len(words))] = foreign_word(random)
        return " ".join(words), False
    if choice < 0.45:
        return other_answer(statement, random)
    other = (
        reworded(statement, random) if random.random() < 0.7 else any_statement(random.choice(MIX), random)
    )
    if len(set(mentions(other))) < len(mentions(other)):
        return None
    question = random.choice(scene_graph(other))
    if says(statement, question.asks) is not False:
        return None
    asked = open_question(question.asks, other)
    if asked is not None and random.random() < 0.5:
        return f"{asked.text} {asked.answer}", False
    return f"{question.text} yes", False


def other_answer(statement: Statement, random: Random) -> tuple[str, bool] | None:
    """Sample an open question of *statement* with another of its answers."""
    asked = ask_openly(random.choice(scene_graph(statement)).asks)
    if asked is None:
        return None
    answer, meant = random.choice([*asked.answers.items()])
    return (f"{asked.text} {answer}", False) if says(statement, meant) is False else None


def says(statement: Statement, asks: Statement) -> bool | None:
    """Return True if *statement* entails *asks*; None if it is ambiguous."""
    if "negation" in (statement.kind, asks.kind):
        return None if statement.kind == asks.kind and covers(statement.first, asks.first) else False
    if asks.kind == "count":
        same = covers(asks.first, statement.first) and statement.second is None
        return (
            None if same and asks.number == (statement.number if statement.kind == "count" else 1) else False
        )
    if asks.second is None or asks.relation is None:
        return any(covers(asks.first, words) for words in mentions(statement))
    if statement.second is None or statement.relation is None:
        return False
    held = (statement.first, statement.second, statement.relation)
    turned = (statement.second, statement.first, OPPOSITE[statement.relation])
    return any(
        covers(asks.first, first) and covers(asks.second, second) and asks.relation == relation
        for first, second, relation in (held, turned)
    )


def covers(general: Mention, words: Mention) -> bool:
    """Return True if *general* includes *words*, as "a circle" includes "a small red circle"."""
    return (
        general.shape == words.shape
        and general.colour in (None, words.colour)
        and general.size in (None, words.size)
    )


def make_tokenizer(directory: Path) -> Tokenizer:
    """Write and return a tokenizer with the world's words and those of its questions only."""
    vocabulary = [PAD, UNKNOWN, START, END, *sorted(WORDS | {*ASKING.split()})]
    words = Tokenizer(models.WordLevel({word: n for n, word in enumerate(vocabulary)}, UNKNOWN))
    words.normalizer = normalizers.Lowercase()
    words.pre_tokenizer = pre_tokenizers.Whitespace()
    words.post_processor = processors.BertProcessing(
        (END, vocabulary.index(END)), (START, vocabulary.index(START))
    )
    config = {
        "tokenizer_class": "PreTrainedTokenizerFast",
        "model_max_length": LENGTH,
        "pad_token": PAD,
        "unk_token": UNKNOWN,
        "cls_token": START,
        "sep_token": END,
    }
    directory.mkdir(parents=True, exist_ok=True)
    words.save(str(directory / "tokenizer.json"))
    (directory / "tokenizer_config.json").write_text(json.dumps(config, indent=2) + "\n")
    return words


def configuration(words: Tokenizer) -> BertConfig:
    """Return three layers: to group words, to find the things that they mean, and to compare."""
    return BertConfig(
        vocab_size=words.get_vocab_size(),
        hidden_size=64,
        intermediate_size=192,
        num_hidden_layers=3,
        num_attention_heads=4,
        hidden_dropout_prob=0.0,
        attention_probs_dropout_prob=0.0,
        max_position_embeddings=LENGTH,
        initializer_range=0.05,
        pad_token_id=words.token_to_id(PAD),
        id2label=LABELS,
        label2id={label: n for n, label in LABELS.items()},
    )


def make_batch(pairs: Sequence[Pair], words: Tokenizer) -> dict[str, torch.Tensor]:
    """Return the network's inputs for *pairs*."""
    words.enable_truncation(LENGTH)
    words.enable_padding(pad_id=words.token_to_id(PAD), pad_token=PAD)
    encoded = words.encode_batch([(pair.premise, pair.hypothesis) for pair in pairs])
    return {
        "input_ids": torch.tensor([one.ids for one in encoded]),
        "token_type_ids": torch.tensor([one.type_ids for one in encoded]),
        "attention_mask": torch.tensor([one.attention_mask for one in encoded]),
    }


def train(directory: Path, work: Path, *, say: Callable[[str], None] = print) -> None:
    """Train from scratch (or resume from *work*) and write a checkpoint to *directory*."""
    torch.manual_seed(SEED)
    words = make_tokenizer(directory)
    student = BertForSequenceClassification(configuration(words))
    loop = Loop(student, work / "nli.pt", STAGE, say=say)
    for step in loop.steps():
        random = Random(f"{SEED}-{step}")
        pairs = [draw(random) for _ in range(ROWS)]
        logits = student(**make_batch(pairs, words)).logits
        labels = torch.tensor([int(pair.entailed) for pair in pairs])
        loop.minimise({"entailment": F.cross_entropy(logits, labels)})
        loop.note("right", (logits.argmax(1) == labels).float().mean().item())
    student.save_pretrained(directory)
