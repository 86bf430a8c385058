"""
Train the demo question LLM: a tiny Llama that writes questions about a statement as JSON, in every style.

It supports the language of the demo world, in a few ways of typing.  For all other prompts, plain English
or a statement with one foreign word, it returns no questions, so that the service can refuse them.

Answers alone never teach it that "a red circle and a blue circle" has one shape, which needs one question:
a small head, used in training only, predicts this from the middle layer at the second shape word.

They also teach it too slowly that "Is the circle blue?" does not fit "a red circle".  So in a second stage
half of the samples are answers to questions about prompts, and another head predicts if a question fits.
"""

from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import torch
from tokenizers import Tokenizer
from torch import nn
from torch.nn import functional as F
from transformers import LlamaConfig, LlamaForCausalLM

from demo.training.loop import Loop, Stage
from demo.training.question_batches import IGNORE, Batch, make_batch
from demo.training.question_prompts import CALLS, READING_CALLS
from demo.training.question_tokenizer import BOS, CONTEXT, EOS, PAD, SEED, train_tokenizer

WRITING = Stage(10_000, 3e-3, 3500)
READING, READING_AGAIN = Stage(4000, 2e-3, 1200), Stage(3500, 1e-3, 2500)
MIDDLE, READ = 2, 3  # layers below the side heads


def configuration(words: Tokenizer) -> LlamaConfig:
    """Return a configuration with heads 32 wide, the minimum of vLLM's attention kernels."""
    return LlamaConfig(
        vocab_size=words.get_vocab_size(),
        hidden_size=128,
        intermediate_size=384,
        num_hidden_layers=4,
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
        """Return losses by name; `right` is the share of answer tokens predicted."""
        output = self.llama.model(
            batch.ids,
            attention_mask=batch.mask,
            position_ids=batch.positions,
            use_cache=False,
            output_hidden_states=True,
        )
        self.states = output.hidden_states
        known, asked = batch.labels != IGNORE, batch.alike != IGNORE
        logits, labels = self.llama.lm_head(output.last_hidden_state[known]).float(), batch.labels[known]
        self.right = (logits.argmax(1) == labels).float().mean().item()
        losses = {"answer": F.cross_entropy(logits, labels)}
        if asked.any():
            said = self.alike(self.states[MIDDLE][asked])
            losses["alike"] = 0.3 * F.cross_entropy(said.float(), batch.alike[asked])
        return losses


class Reader(Student):
    """The student of the second stage, with an additional head."""

    def __init__(self, student: Student) -> None:
        super().__init__(student.llama)
        self.alike = student.alike
        self.own = nn.Linear(student.llama.config.hidden_size, 2)

    def forward(self, batch: Batch) -> dict[str, torch.Tensor]:
        """Return the losses, with one for whether each question fits the prompt."""
        losses = super().forward(batch)
        asked = batch.own != IGNORE
        if asked.any():
            said = self.own(self.states[READ][asked]).float()
            losses["own"] = F.cross_entropy(said, batch.own[asked])
        return losses


def train(directory: Path, work: Path, *, say: Callable[[str], None] = print) -> None:
    """Train from scratch (or resume from *work*) and write a checkpoint to *directory*."""
    torch.manual_seed(SEED)
    if not (directory / "tokenizer.json").exists():
        train_tokenizer(directory)
    words = Tokenizer.from_file(str(directory / "tokenizer.json"))
    student = Student(LlamaForCausalLM(configuration(words)))
    loop = Loop(student, work / "questions.pt", WRITING, say=say)
    practise(student, loop, lambda step: make_batch(step, words, CALLS))
    reader, done = Reader(student), WRITING.steps
    for name, stage in (("reading", READING), ("reading-again", READING_AGAIN)):
        loop = Loop(reader, work / f"{name}.pt", stage, say=say)
        practise(reader, loop, partial(make_reading, done, words))
        done += stage.steps
    student.llama.save_pretrained(directory)


def make_reading(done: int, words: Tokenizer, step: int) -> Batch:
    """Return a batch of the stages for reading, after *done* earlier steps."""
    return make_batch(done + step, words, READING_CALLS)


def practise(student: Student, loop: Loop, make: Callable[[int], Batch]) -> None:
    """Run all steps of a stage."""
    for step in loop.steps():
        with torch.autocast("cpu", torch.bfloat16):
            losses = student(make(step))
        loop.minimise(losses)
        loop.note("right", student.right)
