"""
A tokenizer for the demo question LLM: the world's words and repeated parts of answers are single tokens.
"""

import json
import re
from collections.abc import Iterator
from itertools import chain
from pathlib import Path
from pydoc_data.topics import topics  # ordinary English that every Python carries
from random import Random

from tokenizers import AddedToken, Tokenizer, decoders, models, pre_tokenizers, trainers

from demo.training.language import PLURALS
from demo.training.question_prompts import CALLS, KNOWN, PICTURED, pair
from models.families.question_llm import user_message

SEED = 5  # of the tokenizer, the batches and the weights

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
# Parts of an answer that depend on the prompt.  The repeated text between them is one token at each entry's
# beginning and one at its end, so that a question costs five or six.
SAID = re.compile(
    "|".join(f'(?<="{key}":")[^"?)]*' for key in ("text", "entity", "tuple", "question", "phrase"))
    + '|(?<="answer":")(?!yes")[^"]*'
)
CUT = re.compile(r"(?<=\},)|(?<=\[)(?=\{)|(?=\]\}$)")
# Also the common parts of questions, tuples and lists of answers.
COMMON = re.compile(
    r"Is there (?:a|no|exactly)\b|Are there exactly|Is the\b|What (?:color|size) is the|How many|are there"
    r"|Where is the|relative to the|What (?:else )?is (?:there|missing)|\w+ - \w+ \("
    r'|(?<=\? )[^?;"]+(?=;|$)|\{"answers":\["|(?<=\w)","(?=\w)|"\]\}$'
)


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
    yield from (" ".join(["", *random.choices(PICTURED, k=8)]) for _ in range(500))
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
