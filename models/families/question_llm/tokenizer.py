"""A chat model's tokenizer."""

from collections.abc import Sequence
from pathlib import Path

from models.checkpoints.pretrained import load_tokenizer, thread_safe
from models.core.calls import GenerateCall
from models.core.contract import CheckpointError

HERE = "\ufffcuser\ufffc"  # stands for the user message while the chat template is rendered


class ChatTokenizer:
    """
    Chats to token ids, and ids to text; thread-safe.

    Attributes:
        loaded: the object of transformers.

    Raises:
        CheckpointError: it cannot be loaded, is not a fast one, or has no chat template.
    """

    def __init__(self, directory: Path) -> None:
        self.loaded = load_tokenizer(directory)
        if not self.loaded.is_fast or not self.loaded.chat_template:
            raise CheckpointError(f"{directory}: needs a fast tokenizer with a chat template")
        self._special = thread_safe(self.loaded)
        self._plain = thread_safe(self.loaded)
        self._plain.encode_special_tokens = True  # "</s>" in a prompt is text

    def encode(self, system: str, user: str) -> list[int]:
        """Return a chat as ids: special tokens come only from the template, not from the user's text."""
        messages = GenerateCall(system, HERE).messages
        rendered: str = self.loaded.apply_chat_template(messages, tokenize=False, add_generation_prompt=True)
        before, _, after = rendered.rpartition(HERE)
        parts = ((self._special, before), (self._plain, user), (self._special, after))
        return [i for tokenizer, text in parts for i in tokenizer.encode(text, add_special_tokens=False).ids]

    def decode(self, ids: Sequence[int]) -> str:
        """Return the text of *ids*, without special tokens."""
        return self._special.decode(ids)
