"""A T5 tokenizer for the demo model: the words of the demo world whole, other English in pieces."""

import json
from pathlib import Path
from pydoc_data.topics import topics  # ordinary English that every Python carries
from random import Random

import sentencepiece

from demo.training.facts import RELATIVE
from demo.training.language import WORDS
from demo.training.vqa_questions import MISSING, THERE, sample_question
from demo.training.world import sample_scene
from models.families.clip_flant5.tokens import SYSTEM

PIECES = 1500
# Repeated parts of questions are one piece each, since text tokens cost as much as image tokens.
REPEATED = (
    *(f"{SYSTEM} USER:", "ASSISTANT:"),
    *("Does this figure show", "Please answer yes or no.", "Please answer yes, no or unsure."),
    *("true for", "in this image?", "Answer in one word."),
    "Answer the question using a single word or phrase.",
    *("Is there", "Are there exactly", "exactly", "are there", "Is the", "the", RELATIVE),
    *("Yes", "No", "Unsure", "yes"),
)
OPEN = (
    *("How many", "Where is the", "What color is the", "What size is the"),
    *(text[:-1] for text in (*THERE, MISSING)),
)


def whole_words() -> list[str]:
    """
    Return the texts that are one token: repeated parts of questions, and the world's words, also after a
    quote.
    """
    quoted = ['"' + text for text in (*WORDS, *OPEN)]
    return sorted({"\u2581" + text.replace(" ", "\u2581") for text in (*REPEATED, *OPEN, *WORDS, *quoted)})


def corpus(seed: int = 0) -> list[str]:
    """Return lines of English and of the demo world."""
    random = Random(seed)
    lines = [line for text in topics.values() for line in text.splitlines() if line.strip()]
    for _ in range(12_000):
        asked = sample_question(sample_scene(random), random)
        if asked is not None:
            lines.append(asked.text)
    return lines


def train_tokenizer(directory: Path) -> None:
    """Write `spiece.model` and `tokenizer_config.json` like the published checkpoints."""
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
