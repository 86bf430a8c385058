"""A real pipeline of diffusers, with a network of random weights; run by `pasted.py`."""

import importlib
from string import ascii_lowercase
from typing import Any

import torch
from diffusers import AutoencoderKL, DDIMScheduler, StableDiffusionPipeline, UNet2DConditionModel
from transformers import CLIPTextConfig, CLIPTextModel, CLIPTokenizer

from scoregate.trainers.diffusers import best_of_n
from scoregate.trainers.reward import Reward

PROMPT = "a red square"
WIDTH = 32


def pipeline() -> Any:
    """A StableDiffusionPipeline that draws noise of 32x32 pixels."""
    torch.manual_seed(0)
    tokens = [
        *ascii_lowercase,
        *(f"{letter}</w>" for letter in ascii_lowercase),
        "<|startoftext|>",
        "<|endoftext|>",
    ]
    tokenizer = CLIPTokenizer(vocab={token: number for number, token in enumerate(tokens)}, merges=[])
    tokenizer.model_max_length = 16
    text = CLIPTextConfig(
        vocab_size=len(tokens),
        hidden_size=WIDTH,
        intermediate_size=WIDTH,
        num_hidden_layers=1,
        num_attention_heads=4,
        max_position_embeddings=16,
        bos_token_id=len(tokens) - 2,
        eos_token_id=len(tokens) - 1,
        pad_token_id=0,
    )
    unet = UNet2DConditionModel(
        block_out_channels=(WIDTH, 2 * WIDTH),
        layers_per_block=1,
        sample_size=16,
        down_block_types=("DownBlock2D", "CrossAttnDownBlock2D"),
        up_block_types=("CrossAttnUpBlock2D", "UpBlock2D"),
        cross_attention_dim=WIDTH,
    )
    vae = AutoencoderKL(
        block_out_channels=[WIDTH, 2 * WIDTH],
        down_block_types=["DownEncoderBlock2D"] * 2,
        up_block_types=["UpDecoderBlock2D"] * 2,
        latent_channels=4,
    )
    made = StableDiffusionPipeline(
        vae=vae,
        text_encoder=CLIPTextModel(text),
        tokenizer=tokenizer,
        unet=unet,
        scheduler=DDIMScheduler(clip_sample=False, steps_offset=1),
        safety_checker=None,
        feature_extractor=None,
        requires_safety_checker=False,
    )
    made.set_progress_bar_config(disable=True)
    return made


def picked() -> dict[str, Any]:
    """Draw; return what the functions of the page diffusers.md make of the pictures."""
    page = importlib.import_module("pick")
    made = pipeline()

    def draw(*prompts: Any, **more: Any) -> Any:
        torch.manual_seed(1)
        return made(*prompts, num_inference_steps=1, height=WIDTH, width=WIDTH, **more)

    pictures = draw(PROMPT, num_images_per_prompt=4).images
    scores = Reward(logit=False)(pictures, [PROMPT] * 4)
    best = page.best(draw, PROMPT)
    by_type = {
        kind: best_of_n(draw(PROMPT, num_images_per_prompt=4, output_type=kind), PROMPT).index
        for kind in ("pil", "np", "pt")
    }
    shown = page.shown(draw, [PROMPT, "a blue circle"], -1.0)
    return {
        "scores": scores,
        "best": [picture.tobytes() == best.tobytes() for picture in pictures].index(True),
        "by_type": by_type,
        "shown": len(shown),
    }
