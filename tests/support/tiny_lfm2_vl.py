"""
An LFM2-VL checkpoint, tiny and random, for a decision endpoint of vLLM; and what transformers computes.

It has a single attention head: with several, vLLM 0.32 applies the rotary embedding to wrong rows on a CPU.
"""

from collections.abc import Sequence
from pathlib import Path

import PIL.Image
import torch
import transformers  # its names are imported when they are used: every worker collects this file

from tests.support.tiny_llava import rename
from tests.support.tiny_tokenizer import CHARACTERS, make_tokenizer

PATCH, HIDDEN = 8, 64
REPLY = "<reply>"  # ends a prompt: the labels are looked for after the last special token
OF_IMAGES = ["<image>", "<|image_start|>", "<|image_end|>", "<|img_thumbnail|>"]
YES, NO = ("yes", "Yes", "YES"), ("no", "No", "NO")  # forms of one label
LETTERS = [(letter, f" {letter}") for letter in "ABCDE"]
TEMPLATE = (
    "{% for message in messages %}"
    "{% if message['content'] is string %}{{ message['content'] }}{% else %}"
    "{% for part in message['content'] %}"
    "{% if part['type'] == 'image' %}<image>{% else %}{{ part['text'] }}{% endif %}"
    "{% endfor %}{% endif %}{% endfor %}"
    "{% if add_generation_prompt %}" + REPLY + "{% endif %}"
)


def make_lfm2_vl(directory: Path) -> None:
    """Write the checkpoint."""
    torch.manual_seed(0)
    processor = make_processor()
    text = transformers.Lfm2Config(
        architectures=["Lfm2ForCausalLM"],
        vocab_size=len(processor.tokenizer),
        hidden_size=HIDDEN,
        block_dim=HIDDEN,
        conv_dim=HIDDEN,
        intermediate_size=128,
        block_auto_adjust_ff_dim=False,
        num_hidden_layers=2,
        layer_types=["conv", "full_attention"],
        num_attention_heads=1,
        num_key_value_heads=1,
        max_position_embeddings=2048,
        initializer_range=0.2,
    )
    vision = transformers.Siglip2VisionConfig(
        hidden_size=32,
        intermediate_size=64,
        num_hidden_layers=2,
        num_attention_heads=2,
        patch_size=PATCH,
        num_patches=64,
        vision_use_head=False,
    )
    config = transformers.Lfm2VlConfig(
        text_config=text,
        vision_config=vision,
        image_token_id=processor.image_token_id,
        projector_hidden_size=HIDDEN,
    )
    transformers.Lfm2VlForConditionalGeneration(config).eval().save_pretrained(directory)
    rename(directory / "model.safetensors", "model.vision_tower.")
    processor.save_pretrained(directory)


def make_processor() -> "transformers.Lfm2VlProcessor":
    """Return a processor that shows each picture in one piece, as 16 to 64 tokens."""
    words = [*YES, *NO, *(spaced for _, spaced in LETTERS)]
    pixels = transformers.Lfm2VlImageProcessor(
        encoder_patch_size=PATCH,
        do_image_splitting=False,
        min_tiles=1,
        max_tiles=1,
        min_image_tokens=16,
        max_image_tokens=64,
    )
    tokenizer = make_tokenizer([*OF_IMAGES, REPLY], words, ["\n", *CHARACTERS])
    return transformers.Lfm2VlProcessor(pixels, tokenizer, chat_template=TEMPLATE)


@torch.no_grad()
def decided(
    directory: Path, rgb: PIL.Image.Image, question: str, labels: Sequence[Sequence[str]]
) -> tuple[tuple[float, ...], float]:
    """
    Return each label's share and the mass of all labels, by transformers, in float32.

    A share is that of the label's likeliest form, and the mass has all forms, as in vLLM.
    """
    processor = transformers.Lfm2VlProcessor.from_pretrained(directory)
    model = transformers.Lfm2VlForConditionalGeneration.from_pretrained(
        directory, dtype=torch.float32, key_mapping={"vision_tower.vision_model.": "vision_tower."}
    )
    prompt = f"<image>A picture.\n\n\nQUESTION:\n{question}{REPLY}"
    inputs = processor(images=rgb, text=prompt, return_tensors="pt")
    first = model(**inputs).logits[0, -1].softmax(-1)
    known = processor.tokenizer.get_vocab()
    forms = [[float(first[known[form]]) for form in label if form in known] for label in labels]
    best = [max(each) for each in forms]
    return tuple(each / sum(best) for each in best), sum(map(sum, forms))
