"""
A causal language model that writes question sets, run through transformers.

Any checkpoint will do that `AutoModelForCausalLM` loads without code of its own and whose tokenizer
is a fast one with a chat template.  Real ones are better served by vLLM in a process of their own;
this is the embedded default, which carries the demo's tiny Llama.

Decoding is greedy and one call at a time: padding would change the last bits of the logits, and now
and then a word, with the company a call happens to be in.  Where a call brings a JSON schema, tokens
that would leave it are masked (llguidance, which vLLM uses for the same).
"""

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import llguidance.hf
import torch
from tokenizers import Tokenizer
from transformers import AutoModelForCausalLM, AutoTokenizer

from models.base import CheckpointError, GenerateCall, ModelError, ModelInfo, Prepared
from models.checkpoint import DTYPES, in_short, read_vocabulary, revision_of, weight_files

FILES = ("config.json", "tokenizer.json", "tokenizer_config.json")
HERE = "\ufffcuser\ufffc"  # stands for the user message while the chat template is rendered


def user_message(style: str, prompt: str) -> str:
    """What every question LLM is asked, below the system message that explains the style."""
    return f"style: {style}\nprompt: {prompt}"


class QuestionLLM:
    """
    A chat model on one device.

    Args:
        directory: a checkpoint as transformers saves it, weights in safetensors.
        dtype: "float32" or "bfloat16".
        device: where PyTorch puts it: "cpu", "cuda:0".
        id, revision: what scores are labelled with; by default the directory's name and a digest.

    Raises:
        CheckpointError: naming the file that is missing or cannot be used.
    """

    def __init__(self, directory: Path, *, dtype: str, device: str, id: str = "", revision: str = "") -> None:
        for name in FILES:
            if not (directory / name).is_file():
                raise CheckpointError(f"{directory / name}: missing")
        weight_files(directory)
        self._tokenizer = load_tokenizer(directory)
        self._words = backend(self._tokenizer)
        self._plain = backend(self._tokenizer)
        self._plain.encode_special_tokens = True  # "</s>" in a prompt is text
        self._model = load_model(directory, DTYPES[dtype]).to(device).eval()
        self._context: int = self._model.config.max_position_embeddings
        self._ends = end_tokens(self._model, self._tokenizer)
        self._grammar_words = load_grammar_words(self._tokenizer, self._model.config.vocab_size)
        self.info = ModelInfo(
            role="questions",
            family="transformers",
            id=id or directory.name,
            revision=revision or revision_of(directory, FILES),
            dtype=dtype,
            device=device,
            vocabulary=read_vocabulary(directory),
        )

    def prepare(self, call: GenerateCall) -> Prepared:
        """
        Token ids of the chat, `data` is (ids, max_tokens, schema); `cost` counts the first two.

        Raises:
            ModelError: where the chat and `max_tokens` of answer do not fit the context.
        """
        ids = self._chat(call.system, call.user)
        cost = len(ids) + call.max_tokens
        if cost > self._context:
            raise ModelError(
                f"the prompt is too long: {len(ids)} tokens and {call.max_tokens} for the answer"
                f" do not fit the question model's context of {self._context}"
            )
        return Prepared(cost, (ids, call.max_tokens, call.schema))

    def _chat(self, system: str, user: str) -> list[int]:
        """The chat as ids: special tokens come from the template, never from what a user typed."""
        messages = [{"role": "system", "content": system}, {"role": "user", "content": HERE}]
        rendered: str = self._tokenizer.apply_chat_template(
            messages, tokenize=False, add_generation_prompt=True
        )
        before, _, after = rendered.rpartition(HERE)
        parts = ((self._words, before), (self._plain, user), (self._words, after))
        return [i for words, text in parts for i in words.encode(text, add_special_tokens=False).ids]

    @torch.inference_mode()
    def score(self, batch: Sequence[Prepared]) -> list[str | ModelError]:
        """The text of each answer, or why there is none."""
        return [self._answer(*prepared.data) for prepared in batch]

    def _answer(self, ids: list[int], most: int, schema: Mapping[str, Any] | None) -> str | ModelError:
        """The likeliest token that the schema allows, one after another, at most *most*."""
        allowed = Allowed(self._grammar_words, schema) if schema is not None else None
        written: list[int] = []
        fresh, cache = ids, None
        while len(written) < most:
            step = torch.tensor([fresh], device=self.info.device)
            output = self._model(step, past_key_values=cache, use_cache=True, logits_to_keep=1)
            logits = output.logits[0, -1].float().cpu()
            token = int((allowed.mask(logits) if allowed else logits).argmax())
            if token in self._ends:
                return self._words.decode(written)
            if allowed:
                allowed.take(token)
            written.append(token)
            fresh, cache = [token], output.past_key_values
        return ModelError(f"the answer did not end within {most} tokens")

    def example(self) -> GenerateCall:
        """A short prompt of the usual form."""
        user = user_message("dsg", "a red circle left of a blue square")
        return GenerateCall("Write yes/no questions about the prompt as JSON.", user)


class Allowed:
    """Which tokens may come next under a JSON schema."""

    def __init__(self, words: Any, schema: Mapping[str, Any]) -> None:
        # Without spaces: a small model that is forced off its way may go on writing them for ever.
        # Without forcing: what has but one way on may still be said in the model's own tokens.
        bound = {**schema, "x-guidance": {"whitespace_flexible": False}}
        grammar = f'%llguidance {{"no_forcing": true}}\nstart: %json {json.dumps(bound)}'
        self._matcher = llguidance.LLMatcher(words, grammar)

    def mask(self, logits: torch.Tensor) -> torch.Tensor:
        """The logits (vocabulary), minus infinity for what would leave the schema."""
        bias = torch.frombuffer(bytearray(self._matcher.compute_logit_bias()), dtype=torch.uint8)
        return logits.masked_fill(bias == 0, -torch.inf)

    def take(self, token: int) -> None:
        """Go on from *token*."""
        self._matcher.consume_token(token)


def load_grammar_words(tokenizer: Any, vocabulary: int) -> Any:
    """The tokenizer as llguidance sees it.  Raises `CheckpointError`."""
    try:
        return llguidance.hf.from_tokenizer(tokenizer, n_vocab=vocabulary)
    except Exception as exc:  # it raises many kinds for a tokenizer it can't take
        raise CheckpointError(f"the tokenizer can't be bound to a schema: {in_short(exc)}") from exc


def load_tokenizer(directory: Path) -> Any:
    """The tokenizer in *directory*.  Raises `CheckpointError`, also where it cannot chat."""
    try:
        tokenizer = AutoTokenizer.from_pretrained(directory, local_files_only=True, trust_remote_code=False)
    except Exception as exc:  # transformers and tokenizers raise many kinds for a broken file
        raise CheckpointError(f"{directory / 'tokenizer.json'}: {in_short(exc)}") from exc
    if not tokenizer.is_fast or not tokenizer.chat_template:
        raise CheckpointError(f"{directory}: the tokenizer is not a fast one with a chat template")
    return tokenizer


def backend(tokenizer: Any) -> Tokenizer:
    """A copy of the tokenizer's own: `encode` of a fast one sets state and is not thread-safe."""
    words = Tokenizer.from_str(tokenizer.backend_tokenizer.to_str())
    words.no_padding()
    words.no_truncation()
    return words


def load_model(directory: Path, dtype: torch.dtype) -> Any:
    """The network with every weight from *directory*.  Raises `CheckpointError`."""
    try:
        model, loaded = AutoModelForCausalLM.from_pretrained(
            directory,
            dtype=dtype,
            local_files_only=True,
            trust_remote_code=False,
            use_safetensors=True,
            output_loading_info=True,
        )
    except Exception as exc:  # a broken configuration or file fails in many ways
        raise CheckpointError(f"{directory}: cannot be loaded: {in_short(exc)}") from exc
    if loaded["missing_keys"] or loaded["mismatched_keys"]:
        # transformers would go on with random weights in their place
        raise CheckpointError(f"{directory}: weights are missing or of another shape")
    return model


def end_tokens(model: Any, tokenizer: Any) -> frozenset[int]:
    """Ids that end an answer: chat models may have several."""
    ends = model.generation_config.eos_token_id
    if ends is None:
        ends = tokenizer.eos_token_id
    return frozenset(ends if isinstance(ends, list) else [ends])
