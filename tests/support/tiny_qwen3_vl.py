"""A Qwen3-VL checkpoint, tiny and random, for three roles of a vLLM; and what transformers computes."""

import json
from collections.abc import Sequence
from functools import cache
from pathlib import Path
from typing import Any

import PIL.Image
import torch
from transformers import AutoModelForImageTextToText, AutoProcessor, AutoTokenizer

from tests.support.vl_checkpoints import qwen_vl

# 32 is the least size of a head for which vLLM 0.32 has attention on a CPU.
TEXT = {
    "head_dim": 32,
    "rope_scaling": {"mrope_interleaved": True, "mrope_section": [4, 6, 6], "rope_type": "default"},
}
OVERRIDES = {
    "architectures": ["Qwen3VLForSequenceClassification"],
    "classifier_from_token": ["no", "yes"],
    "is_original_qwen3_reranker": True,
    "text_config": {"tie_word_embeddings": False},
}
INSTRUCTION = "Does the document fit the query?"  # of the template, where a request has none
PAIR = "<|im_start|>user\n{}\nQuery: {}\nDocument: {}<|im_end|>\n<|im_start|>assistant\n"
ONE_IMAGE = "<|vision_start|><|image_pad|><|vision_end|>"

Shown = str | PIL.Image.Image


def make_qwen3_vl(directory: Path) -> None:
    """Write the checkpoint, for whose tokenizer yes and no are words, and so are Yes and No."""
    tokenizer = AutoTokenizer.from_pretrained(qwen_vl(directory, text=TEXT))
    tokenizer.add_tokens(["no"])
    tokenizer.save_pretrained(directory)


def reranker_options(template: Path) -> tuple[str, ...]:
    """Write the chat template of a pair; return the options of a reranker's server."""
    instruction = f"{{{{ instruction | default('{INSTRUCTION}') }}}}"
    contents = [f"{{{{ messages[{n}]['content'] }}}}" for n in (0, 1)]
    template.write_text(PAIR.format(instruction, *contents).replace("\n", "{{ '\\n' }}"))
    return ("--runner", "pooling", "--hf_overrides", json.dumps(OVERRIDES), "--chat-template", str(template))


@cache
def loaded(directory: Path) -> tuple[Any, Any]:
    """Transformers' processor and model of the checkpoint, in float32."""
    model = AutoModelForImageTextToText.from_pretrained(directory, dtype=torch.float32).eval()
    return AutoProcessor.from_pretrained(directory), model


@torch.no_grad()
def last_state(directory: Path, text: str, *shown: Shown) -> torch.Tensor:
    """The last token's state, after the norm, of a text with the images among what is *shown*."""
    processor, model = loaded(directory)
    images = [each for each in shown if not isinstance(each, str)]
    inputs = processor(text=[text], images=images or None, return_tensors="pt")
    state: torch.Tensor = model.model(**inputs).last_hidden_state[0, -1]
    return state


def chat(directory: Path, shown: Sequence[Shown], answer: bool, instruction: str = "") -> str:
    """The text of one message by the checkpoint's template, with the beginning of an *answer* or without."""
    parts = [{"type": "text", "text": each} if isinstance(each, str) else {"type": "image"} for each in shown]
    system = [{"role": "system", "content": [{"type": "text", "text": instruction}]}] if instruction else []
    processor, _ = loaded(directory)
    text: str = processor.apply_chat_template(
        [*system, {"role": "user", "content": parts}], add_generation_prompt=answer
    )
    return text


def embedding(directory: Path, shown: Shown, instruction: str = "") -> torch.Tensor:
    """The last token's state of a text, of an image's chat, or of either's with the start of an answer."""
    chats = bool(instruction) or not isinstance(shown, str)
    text = chat(directory, [shown], bool(instruction), instruction) if chats else str(shown)
    return last_state(directory, text, shown)


@torch.no_grad()
def next_token(directory: Path, text: str, *shown: Shown) -> torch.Tensor:
    """The logits of the token after a text."""
    _, model = loaded(directory)
    logits: torch.Tensor = model.lm_head(last_state(directory, text, *shown))
    return logits


def answer_probabilities(directory: Path, rgb: PIL.Image.Image, question: str) -> list[float]:
    """P of "Yes" and of "No" as the first token of an answer."""
    shown = (rgb, question)
    everything = next_token(directory, chat(directory, shown, True), *shown).softmax(-1)
    found: list[float] = everything[tokens(directory, "Yes", "No")].tolist()
    return found


def relevance(directory: Path, query: Shown, document: Shown, instruction: str = INSTRUCTION) -> float:
    """P of "yes" against "no" as the token after a pair."""
    pair = (query, document)
    text = PAIR.format(instruction, *(each if isinstance(each, str) else ONE_IMAGE for each in pair))
    return float(next_token(directory, text, *pair)[tokens(directory, "yes", "no")].softmax(-1)[0])


def tokens(directory: Path, *words: str) -> list[int]:
    """The token of each word."""
    processor, _ = loaded(directory)
    found: list[int] = processor.tokenizer.convert_tokens_to_ids([*words])
    return found
