"""A T5 tokenizer for the demo model: the words of the demo world whole, other English in pieces."""

import json
import re
from pathlib import Path
from pydoc_data.topics import topics  # ordinary English that every Python carries
from random import Random

import sentencepiece

from models.clip_flant5.tokenizer import SYSTEM
from models.demo.language import KINDS, WORDS, sample_statement, scene_graph
from models.demo.world import sample_scene

PIECES = 1500
FIXED = 'USER ASSISTANT Yes No Does this figure show "a" Please answer yes or no Is Are there exactly the'


def whole_words() -> list[str]:
    """Words in one piece wherever they start: those of the world and of the fixed texts."""
    fixed = re.findall(r"\w{2,}", f"{SYSTEM} {FIXED}")
    return sorted({f"\u2581{word}" for word in (*fixed, *WORDS)})


def corpus(seed: int = 0) -> list[str]:
    """Lines of English and of the demo world."""
    random = Random(seed)
    lines = [line for text in topics.values() for line in text.splitlines() if line.strip()]
    for _ in range(3000):
        scene = sample_scene(random)
        statement = sample_statement(random.choice(KINDS), True, scene, random)
        if statement is None:
            continue
        lines.append(f'Does this figure show "{statement.text}"? Please answer yes or no.')
        lines += [f"{question.text} Please answer yes or no." for question in scene_graph(statement)]
    return lines


def train_tokenizer(directory: Path) -> None:
    """Write `spiece.model` and `tokenizer_config.json` as the published checkpoints have them."""
    directory.mkdir(parents=True, exist_ok=True)
    sentencepiece.SentencePieceTrainer.train(
        sentence_iterator=iter(corpus()),
        model_prefix=str(directory / "spiece"),
        vocab_size=PIECES,
        model_type="unigram",
        user_defined_symbols=whole_words(),
        byte_fallback=True,  # nothing a person can type is unknown
        pad_id=0,
        eos_id=1,
        unk_id=2,
        bos_id=-1,
        max_sentence_length=10_000,
        minloglevel=2,
    )
    (directory / "spiece.vocab").unlink()
    config = {
        "tokenizer_class": "T5Tokenizer",
        "model_max_length": 512,
        "extra_ids": 100,
        "eos_token": "</s>",
        "pad_token": "<pad>",
        "unk_token": "<unk>",
    }
    (directory / "tokenizer_config.json").write_text(json.dumps(config, indent=2) + "\n")
