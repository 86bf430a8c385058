"""
A causal language model that writes question sets, run through transformers.

Any checkpoint is supported that `AutoModelForCausalLM` loads without code of its own and whose tokenizer is a
fast one with a chat template.  It is the default for the demo's tiny Llama; use vLLM for larger models.

Decoding is greedy and one call at a time: padding would change the last bits of the logits, and sometimes a
word. If a call has a JSON schema, tokens that would violate it are masked (llguidance, as in vLLM).
"""

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import llguidance.hf
import torch
from transformers import AutoModelForCausalLM

from models.checkpoints.files import CONFIG, TOKENIZER, TOKENIZER_CONFIG, TOKENIZER_FILES
from models.checkpoints.info import info_of
from models.checkpoints.locate import model_arguments
from models.checkpoints.pretrained import load_pretrained, load_tokenizer, thread_safe
from models.checkpoints.weights import DTYPES
from models.core.calls import GenerateCall
from models.core.contract import CheckpointError, ModelError, Prepared
from models.core.messages import in_short
from models.core.outcomes import Text
from models.families.question_llm import FAMILY, QuestionLLMSettings, user_message


class Allowed:
    """The tokens that may come next under a JSON schema."""

    def __init__(self, tokenizer: Any, schema: Mapping[str, Any]) -> None:
        # No spaces are allowed: a small model under constraints may repeat them forever.
        # Nothing is forced: text with only one continuation keeps the model's own tokens.
        bound = {**schema, "x-guidance": {"whitespace_flexible": False}}
        grammar = f'%llguidance {{"no_forcing": true}}\nstart: %json {json.dumps(bound)}'
        self._matcher = llguidance.LLMatcher(tokenizer, grammar)

    def mask(self, logits: torch.Tensor) -> torch.Tensor:
        """Return the logits (vocabulary), minus infinity for tokens that would violate the schema."""
        bias = torch.frombuffer(bytearray(self._matcher.compute_logit_bias()), dtype=torch.uint8)
        return logits.masked_fill(bias == 0, -torch.inf)

    def take(self, token: int) -> None:
        """Advance by *token*."""
        self._matcher.consume_token(token)


def load_grammar_tokenizer(tokenizer: Any, vocabulary: int) -> Any:
    """Convert the tokenizer for llguidance.  Raises `CheckpointError`."""
    try:
        return llguidance.hf.from_tokenizer(tokenizer, n_vocab=vocabulary)
    except Exception as exc:  # it raises many kinds for a tokenizer it can't take
        raise CheckpointError(f"the tokenizer cannot be used with a JSON schema: {in_short(exc)}") from exc


PLACEHOLDER = "\ufffcuser\ufffc"  # stands for the user message while the chat template is rendered


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
        messages = GenerateCall(system, PLACEHOLDER).messages
        rendered: str = self.loaded.apply_chat_template(messages, tokenize=False, add_generation_prompt=True)
        before, _, after = rendered.rpartition(PLACEHOLDER)
        parts = ((self._special, before), (self._plain, user), (self._special, after))
        return [i for tokenizer, text in parts for i in tokenizer.encode(text, add_special_tokens=False).ids]

    def decode(self, ids: Sequence[int]) -> str:
        """Return the text of *ids*, without special tokens."""
        return self._special.decode(ids)


FILES = (CONFIG, TOKENIZER, TOKENIZER_CONFIG)
EXAMPLE_CHARACTERS = 200
EXAMPLE_SCHEMA = {
    "type": "object",
    "additionalProperties": False,
    "required": ["text"],
    "properties": {
        "text": {"type": "string", "minLength": EXAMPLE_CHARACTERS, "maxLength": EXAMPLE_CHARACTERS}
    },
}
MIN_ANSWER_TOKENS = 1024  # tokens that an answer needs, at least


class QuestionLLM:
    """A chat model on one device.  Args as in `ModelArguments`; raises `CheckpointError`."""

    def __init__(self, directory: Path, *, dtype: str, device: str, id: str = "", revision: str = "") -> None:
        for name in FILES:
            if not (directory / name).is_file():
                raise CheckpointError(f"{directory / name}: missing")
        self._tokenizer = ChatTokenizer(directory)
        self._network = load_pretrained(AutoModelForCausalLM, directory, DTYPES[dtype])
        self._network.to(device).eval()
        self._context: int = self._network.config.max_position_embeddings
        self._ends = end_tokens(self._network, self._tokenizer.loaded)
        self._grammar_tokenizer = load_grammar_tokenizer(
            self._tokenizer.loaded, self._network.config.vocab_size
        )
        more: dict[str, Any] = {"generates": True, "repeatable": True}
        files = (CONFIG, *TOKENIZER_FILES)
        self.info = info_of(FAMILY, directory, files, dtype, device, id, revision, **more)

    def prepare(self, call: GenerateCall) -> Prepared:
        """
        Tokenise the chat; `data` is (ids, tokens of answer, schema), and `cost` counts the first two.

        The answer gets the rest of the context, at most `max_tokens`.

        Raises:
            ModelError: the rest of the context is too small.
        """
        ids = self._tokenizer.encode(call.system, call.user)
        room = min(call.max_tokens, self._context - len(ids))
        if room < (least := min(call.max_tokens, MIN_ANSWER_TOKENS)):
            raise ModelError(
                f"the prompt is too long: {len(ids)} tokens and {least} for the answer"
                f" do not fit the question model's context of {self._context}"
            )
        return Prepared(len(ids) + room, (ids, room, call.schema))

    @torch.inference_mode()
    def score(self, batch: Sequence[Prepared]) -> list[Text | ModelError]:
        """Return each answer, or the error that takes its place."""
        return [self._answer(*prepared.data) for prepared in batch]

    def _answer(self, ids: list[int], max_tokens: int, schema: Mapping[str, Any] | None) -> Text | ModelError:
        """Decode greedily the tokens that the schema allows."""
        allowed = Allowed(self._grammar_tokenizer, schema) if schema is not None else None
        written: list[int] = []
        fresh, cache = ids, None
        while len(written) < max_tokens:
            step = torch.tensor([fresh], device=self.info.device)
            output = self._network(step, past_key_values=cache, use_cache=True, logits_to_keep=1)
            logits = output.logits[0, -1].float().cpu()
            token = int((allowed.mask(logits) if allowed else logits).argmax())
            if token in self._ends:
                return Text(self._tokenizer.decode(written))
            if allowed:
                allowed.take(token)
            written.append(token)
            fresh, cache = [token], output.past_key_values
        return ModelError(f"the answer was longer than {max_tokens} tokens")

    def example(self) -> GenerateCall:
        """Return a short prompt of the usual form, without a style, and an answer of ordinary length."""
        user = user_message("", "a red circle left of a blue square")
        return GenerateCall("Write about the prompt as JSON.", user, schema=EXAMPLE_SCHEMA)


def end_tokens(network: Any, tokenizer: Any) -> frozenset[int]:
    """Return the ids that end an answer: chat models may have several."""
    ends = network.generation_config.eos_token_id
    if ends is None:
        ends = tokenizer.eos_token_id
    return frozenset(ends if isinstance(ends, list) else [ends])


def from_settings(settings: QuestionLLMSettings) -> QuestionLLM:
    """Load the question LLM of a table.  Raises `CheckpointError`."""
    return QuestionLLM(**model_arguments(settings))
