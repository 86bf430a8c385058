"""
Train the demo NLI model: a tiny BERT that decides if a prompt entails a question with its answer.

Its vocabulary is the language of the demo world.  All other words are one unknown token, and a text that
contains it is never entailed.
"""

import json
from collections.abc import Callable, Sequence
from pathlib import Path
from random import Random

import torch
from tokenizers import Tokenizer, models, normalizers, pre_tokenizers, processors
from torch.nn import functional as F
from transformers import BertConfig, BertForSequenceClassification

from demo.training.language import WORDS
from demo.training.loop import Loop, Stage
from demo.training.nli_pairs import Pair, draw

SEED = 11  # of the batches and the weights
STAGE, ROWS = Stage(3600, 1.5e-3, 1400), 64
LENGTH = 64  # tokens of a premise and a hypothesis
PAD, UNKNOWN, START, END = "[PAD]", "[UNK]", "[CLS]", "[SEP]"
ASKING = "the is are there what where how many color size relative to exactly yes ? . , 1 2 3 4 5"
LABELS = {0: "not_entailment", 1: "entailment"}


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
