"""
Train the demo question LLM: a tiny Llama that writes the scene graph of a statement as JSON.

It knows the language of the demo world, in the few ways people type it.  Whatever else it reads,
plain English or a statement with one foreign word in it, it answers with no questions at all, so
that the service can refuse instead of inventing some.

The answers alone never teach it that "a red circle and a blue circle" has one shape, to be asked for
once: a small head, there in training only, asks the middle layer at the second shape word.
"""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import torch
from tokenizers import Tokenizer
from torch import nn
from torch.nn import functional as F
from transformers import LlamaConfig, LlamaForCausalLM

from models.demo.loop import Loop
from models.demo.question_batches import IGNORE, Batch, make_batch
from models.demo.question_tokenizer import BOS, CONTEXT, EOS, PAD, SEED, train_tokenizer

STEPS, DECAY, RATE = 3600, 1000, 3e-3
MIDDLE = 2  # layers below the side head


def configuration(words: Tokenizer) -> LlamaConfig:
    """Heads are 32 wide, the least that vLLM's attention kernels take."""
    return LlamaConfig(
        vocab_size=words.get_vocab_size(),
        hidden_size=128,
        intermediate_size=384,
        num_hidden_layers=3,
        num_attention_heads=4,
        num_key_value_heads=4,
        max_position_embeddings=CONTEXT,
        tie_word_embeddings=True,
        initializer_range=0.05,
        bos_token_id=words.token_to_id(BOS),
        eos_token_id=words.token_to_id(EOS),
        pad_token_id=words.token_to_id(PAD),
    )


class Student(nn.Module):
    """The network with its side head."""

    def __init__(self, llama: Any) -> None:
        super().__init__()
        self.llama = llama
        self.alike = nn.Linear(llama.config.hidden_size, 2)

    def forward(self, batch: Batch) -> dict[str, torch.Tensor]:
        """Losses by name; `right` is the share of answer tokens foreseen."""
        output = self.llama.model(
            batch.ids,
            attention_mask=batch.mask,
            position_ids=batch.positions,
            use_cache=False,
            output_hidden_states=True,
        )
        known, asked = batch.labels != IGNORE, batch.alike != IGNORE
        logits, labels = self.llama.lm_head(output.last_hidden_state[known]), batch.labels[known]
        self.right = (logits.argmax(1) == labels).float().mean().item()
        losses = {"answer": F.cross_entropy(logits, labels)}
        if asked.any():
            said = self.alike(output.hidden_states[MIDDLE][asked])
            losses["alike"] = 0.3 * F.cross_entropy(said, batch.alike[asked])
        return losses


def train(directory: Path, work: Path, *, say: Callable[[str], None] = print) -> None:
    """Train from nothing (or from where *work* was left) and write a checkpoint to *directory*."""
    torch.manual_seed(SEED)
    if not (directory / "tokenizer.json").exists():
        train_tokenizer(directory)
    words = Tokenizer.from_file(str(directory / "tokenizer.json"))
    student = Student(LlamaForCausalLM(configuration(words)))
    loop = Loop(student, work / "questions.pt", steps=STEPS, rate=RATE, decay=DECAY, say=say)
    for step in loop.steps():
        loop.minimise(student(make_batch(step, words)))
        loop.note("right", student.right)
    student.llama.save_pretrained(directory)
