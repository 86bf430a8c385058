"""TRL's real GRPOTrainer on a tiny Llama; run by `pasted.py`."""

import importlib
import json
import tempfile
from pathlib import Path
from typing import Any

from datasets import Dataset
from PIL import Image
from tokenizers import Tokenizer, models, pre_tokenizers
from transformers import LlamaConfig, LlamaForCausalLM, PreTrainedTokenizerFast
from trl import GRPOConfig, GRPOTrainer

from scoregate.trainers.reward import Reward

SAMPLES = Path(__file__).parents[3] / "demo" / "samples"
SPECIAL = {"unk_token": "<unk>", "pad_token": "<pad>", "eos_token": "<eos>", "bos_token": "<bos>"}
ROWS = 2  # prompts, each with two completions: all of them in one batch


def language_model() -> tuple[Any, Any]:
    """A Llama that knows bytes, and its tokenizer."""
    alphabet = [*SPECIAL.values(), *sorted(pre_tokenizers.ByteLevel.alphabet())]
    core = Tokenizer(
        models.BPE(vocab={token: n for n, token in enumerate(alphabet)}, merges=[], unk_token="<unk>")
    )
    core.pre_tokenizer = pre_tokenizers.ByteLevel()
    tokenizer = PreTrainedTokenizerFast(tokenizer_object=core, padding_side="left", **SPECIAL)
    config = LlamaConfig(
        vocab_size=len(alphabet),
        hidden_size=32,
        intermediate_size=64,
        num_hidden_layers=1,
        num_attention_heads=2,
        num_key_value_heads=2,
        max_position_embeddings=256,
        pad_token_id=1,
        eos_token_id=2,
        bos_token_id=3,
    )
    return LlamaForCausalLM(config), tokenizer


def trained(reward: Any, rows: Dataset) -> float:
    """The mean reward that the trainer logged of its only step."""
    model, tokenizer = language_model()
    with tempfile.TemporaryDirectory() as folder:
        settings = GRPOConfig(
            output_dir=folder,
            per_device_train_batch_size=2 * ROWS,
            num_generations=2,
            max_completion_length=4,
            max_steps=1,
            report_to=[],
            use_cpu=True,
            save_strategy="no",
            logging_steps=1,
            disable_tqdm=True,
            bf16=False,
        )
        trainer = GRPOTrainer(
            model=model, args=settings, train_dataset=rows, reward_funcs=reward, processing_class=tokenizer
        )
        trainer.train()
    return float(trainer.state.log_history[0]["reward"])


def rewarded(column: str) -> dict[str, float]:
    """
    Train with the reward functions of the page trl.md.

    Args:
        column: the name of the pictures.

    Returns:
        The mean reward that the trainer logged, by function, and as `expected` that of its pictures.
    """
    samples = json.loads((SAMPLES / "prompts.json").read_text("utf-8"))[:ROWS]
    pictures = [Image.open(SAMPLES / sample["file"]).convert("RGB") for sample in samples]
    prompts = [sample["right"] for sample in samples]
    rows = Dataset.from_dict({"prompt": prompts, column: pictures})
    scores = Reward()(pictures, prompts)
    found = {name: trained(importlib.import_module(name).reward, rows) for name in ("rewards", "masked")}
    return {**found, "expected": sum(scores) / len(scores)}
