"""A chat model's tokenizer."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from transformers import AutoTokenizer

from models.checkpoints.files import TOKENIZER
from models.checkpoints.pretrained import thread_safe
from models.core.contract import CheckpointError
from models.core.reason import in_short

HERE = "\ufffcuser\ufffc"  # stands for the user message while the chat template is rendered


class ChatTokenizer:
    """
    Chats to token ids, and ids to text; thread-safe.

    Args:
        directory: holds a tokenizer of transformers.

    Attributes:
        loaded: transformers' own object.

    Raises:
        CheckpointError: it cannot be loaded, is not a fast one, or has no chat template.
    """

    def __init__(self, directory: Path) -> None:
        self.loaded = load_tokenizer(directory)
        self._words = thread_safe(self.loaded)
        self._plain = thread_safe(self.loaded)
        self._plain.encode_special_tokens = True  # "</s>" in a prompt is text

    def encode(self, system: str, user: str) -> list[int]:
        """A chat as ids: special tokens come from the template, never from what a user typed."""
        messages = [{"role": "system", "content": system}, {"role": "user", "content": HERE}]
        rendered: str = self.loaded.apply_chat_template(messages, tokenize=False, add_generation_prompt=True)
        before, _, after = rendered.rpartition(HERE)
        parts = ((self._words, before), (self._plain, user), (self._words, after))
        return [i for words, text in parts for i in words.encode(text, add_special_tokens=False).ids]

    def decode(self, ids: Sequence[int]) -> str:
        """The text that *ids* stand for, without special tokens."""
        return self._words.decode(ids)


def load_tokenizer(directory: Path) -> Any:
    """The tokenizer in *directory*.  Raises `CheckpointError`, also where it cannot chat."""
    try:
        tokenizer = AutoTokenizer.from_pretrained(directory, local_files_only=True, trust_remote_code=False)
    except Exception as exc:  # transformers and tokenizers raise many kinds for a broken file
        raise CheckpointError(f"{directory / TOKENIZER}: {in_short(exc)}") from exc
    if not tokenizer.is_fast or not tokenizer.chat_template:
        raise CheckpointError(f"{directory}: needs a fast tokenizer with a chat template")
    return tokenizer
