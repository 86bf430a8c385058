"""A LLaVA checkpoint, tiny and random, in the layout that vLLM loads; and what transformers says of it."""

from collections.abc import Sequence
from pathlib import Path

import PIL.Image
import torch
from safetensors.torch import load_file, save_file
from transformers import (
    CLIPImageProcessor,
    CLIPVisionConfig,
    LlamaConfig,
    LlavaConfig,
    LlavaForConditionalGeneration,
    LlavaProcessor,
    PreTrainedTokenizerFast,
)

from tests.support.tiny_tokenizer import make_tokenizer

SIDE, PATCH = 56, 4  # 196 patches: more than one block of vLLM's cache, which holds 128 tokens on a CPU
LABELS = ("Yes", "No")
HEAD = "language_model.score.weight"  # where vLLM looks for a reward model's head
TEMPLATE = (
    "{% for message in messages %}{% for part in message['content'] %}"
    "{% if part['type'] == 'image' %}<image>{% else %}{{ part['text'] }}{% endif %}"
    "{% endfor %}{% endfor %}"
)


def make_llava(directory: Path) -> None:
    """Write the checkpoint."""
    torch.manual_seed(0)
    processor = make_processor()
    config = LlavaConfig(
        vision_config=CLIPVisionConfig(
            hidden_size=32,
            intermediate_size=64,
            num_hidden_layers=2,
            num_attention_heads=2,
            image_size=SIDE,
            patch_size=PATCH,
            projection_dim=32,
        ),
        text_config=LlamaConfig(
            vocab_size=len(processor.tokenizer),
            hidden_size=64,
            intermediate_size=128,
            num_hidden_layers=2,
            num_attention_heads=2,
            num_key_value_heads=2,
            head_dim=32,
            max_position_embeddings=2048,
            bos_token_id=1,
            eos_token_id=2,
            pad_token_id=0,
            initializer_range=0.2,
        ),
        image_token_index=processor.tokenizer.convert_tokens_to_ids("<image>"),
        vision_feature_layer=-2,
        vision_feature_select_strategy="default",
    )
    model = LlavaForConditionalGeneration(config).eval()
    add_answers(model, processor.tokenizer)
    model.save_pretrained(directory)
    rename(directory / "model.safetensors", "vision_tower.")
    processor.save_pretrained(directory)


@torch.no_grad()
def add_answers(model: LlavaForConditionalGeneration, tokenizer: PreTrainedTokenizerFast) -> None:
    """Make "Yes" and "No" the likeliest tokens after a newline, which this tokenizer has no word for."""
    embedding = model.get_input_embeddings().weight[tokenizer.unk_token_id]
    direction = embedding / embedding.norm()
    embedding *= 20  # else the layers bring in more than the token itself
    for label in LABELS:
        model.lm_head.weight[tokenizer.convert_tokens_to_ids(label)] += 1.5 * direction


def make_processor() -> LlavaProcessor:
    """Return a processor for whose tokenizer the labels are words."""
    pixels = CLIPImageProcessor(size={"shortest_edge": SIDE}, crop_size={"height": SIDE, "width": SIDE})
    return LlavaProcessor(
        pixels,
        make_tokenizer(["<image>"], LABELS),
        patch_size=PATCH,
        vision_feature_select_strategy="default",
        num_additional_image_tokens=1,
        chat_template=TEMPLATE,
    )


def rename(weights: Path, old: str) -> None:
    """Give the vision weights, now below *old*, the prefix that vLLM looks for."""
    tensors = load_file(weights)
    renamed = {
        f"{old}vision_model.{name.removeprefix(old)}" if name.startswith(old) else name: tensor
        for name, tensor in tensors.items()
    }
    save_file(renamed, weights, {"format": "pt"})


@torch.no_grad()
def label_probabilities(
    directory: Path,
    rgb: PIL.Image.Image,
    question: str,
    labels: tuple[str, ...] = LABELS,
    before: Sequence[str | PIL.Image.Image] = (),
) -> tuple[float, ...]:
    """
    P of each of the *labels*, tokens all of them, as the first token, by transformers, in float32.

    Args:
        before: texts and pictures that stand before the picture.
    """
    processor = LlavaProcessor.from_pretrained(directory)
    model = LlavaForConditionalGeneration.from_pretrained(directory, dtype=torch.float32)
    shown = [*before, rgb, question]
    images = [each for each in shown if not isinstance(each, str)]
    text = "".join(each if isinstance(each, str) else "<image>" for each in shown)
    inputs = processor(images=images, text=text, return_tensors="pt")
    first = model(**inputs).logits[0, -1].softmax(-1)
    return tuple(first[processor.tokenizer.convert_tokens_to_ids([*labels])].tolist())


def add_head(directory: Path, outputs: int) -> None:
    """Make it a reward model: a head of so many numbers, over the last token."""
    tensors = load_file(directory / "model.safetensors")
    head = torch.randn(outputs, 64, generator=torch.Generator().manual_seed(1))
    save_file({**tensors, HEAD: head}, directory / "model.safetensors", {"format": "pt"})


@torch.no_grad()
def rewards(directory: Path, rgb: PIL.Image.Image, text: str) -> list[float]:
    """What the head says of image and text: the product with the last token's state, by transformers."""
    processor = LlavaProcessor.from_pretrained(directory)
    model = LlavaForConditionalGeneration.from_pretrained(directory, dtype=torch.float32)
    inputs = processor(images=rgb, text=f"<image>{text}", return_tensors="pt")
    last = model.model(**inputs).last_hidden_state[0, -1]
    found: list[float] = (load_file(directory / "model.safetensors")[HEAD] @ last).tolist()
    return found
