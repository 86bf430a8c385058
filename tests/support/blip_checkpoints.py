"""Tiny checkpoints of BLIPs with random weights, as transformers saves them."""

import shutil
from pathlib import Path
from typing import Any

import torch
from transformers import (
    BertTokenizerFast,
    Blip2Config,
    Blip2ForConditionalGeneration,
    Blip2ForImageTextRetrieval,
    BlipConfig,
    BlipForImageTextRetrieval,
    BlipForQuestionAnswering,
    BlipImageProcessorPil,
    InstructBlipConfig,
    InstructBlipForConditionalGeneration,
)

from tests.support.paths import GOLDEN

SIDE, PATCH = 28, 14
SPECIAL = ("[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", "[DEC]")
WORDS = ("a", "the", "red", "blue", "green", "circle", "square", "dog", "cat", "left", "of", "on")
LAYERS: dict[str, Any] = {
    "hidden_size": 16,
    "intermediate_size": 32,
    "num_hidden_layers": 2,
    "num_attention_heads": 2,
    "initializer_range": 0.5,
}
TOWER = {**LAYERS, "image_size": SIDE, "patch_size": PATCH}
TEXT = {
    **LAYERS,
    "vocab_size": 24,
    "max_position_embeddings": 40,
    "encoder_hidden_size": 16,
    "pad_token_id": 0,
}


QFORMER = {**TEXT, "cross_attention_frequency": 1}
PIECES = GOLDEN / "clip_flant5" / "spiece.model"
T5: dict[str, Any] = {
    "model_type": "t5",
    "vocab_size": 1008,
    "d_model": 16,
    "d_kv": 8,
    "d_ff": 32,
    "num_layers": 2,
    "num_heads": 2,
    "feed_forward_proj": "gated-gelu",
    "tie_word_embeddings": False,
    "decoder_start_token_id": 0,
}
WITH_T5: dict[str, Any] = {
    "vision_config": TOWER,
    "qformer_config": QFORMER,
    "text_config": T5,
    "num_query_tokens": 4,
    "image_token_index": 1000,
}


def blip(directory: Path, **text: int) -> Path:
    """BLIP with its matching head."""
    torch.manual_seed(1)
    text = {**TEXT, "bos_token_id": 5, "sep_token_id": 3, **text}
    config = BlipConfig(vision_config=TOWER, text_config=text)
    return saved(directory, spread(BlipForImageTextRetrieval(config)))


ANSWERS = ("yes", "no", "?")
DEC = len(SPECIAL) + len(WORDS) + len(ANSWERS)  # [ENC] is the next one


def blip_vqa(directory: Path, **text: int) -> Path:
    """BLIP that answers questions, as Salesforce's: [DEC] and [ENC] have rows behind those of the words."""
    torch.manual_seed(5)
    text = {**TEXT, "vocab_size": DEC + 2, "bos_token_id": DEC, "sep_token_id": 3, **text}
    config = BlipConfig(vision_config=TOWER, text_config=text)
    return saved(directory, spread(BlipForQuestionAnswering(config)), *ANSWERS)


def blip_2(directory: Path) -> Path:
    """BLIP-2 of the first stage: no language model."""
    torch.manual_seed(2)
    config = Blip2Config(
        vision_config=TOWER,
        qformer_config={**QFORMER, "use_qformer_text_input": True},
        num_query_tokens=4,
        image_text_hidden_size=8,
    )
    return saved(directory, spread(Blip2ForImageTextRetrieval(config)))


def instructblip(directory: Path) -> Path:
    """InstructBLIP with a FlanT5."""
    torch.manual_seed(3)
    network = InstructBlipForConditionalGeneration(InstructBlipConfig(**WITH_T5))
    saved(directory, spread(network))
    words = BertTokenizerFast(str(directory / "vocab.txt"))
    words.save_pretrained(directory / "qformer_tokenizer")
    return with_pieces(directory)


def blip_2_t5(directory: Path) -> Path:
    """BLIP-2 with a FlanT5, whose Q-Former reads no text."""
    torch.manual_seed(4)
    return with_pieces(saved(directory, spread(Blip2ForConditionalGeneration(Blip2Config(**WITH_T5)))))


def with_pieces(directory: Path) -> Path:
    """The tokenizer of a FlanT5 in place of BERT's."""
    for name in ("tokenizer.json", "tokenizer_config.json", "vocab.txt"):
        (directory / name).unlink()
    shutil.copy(PIECES, directory)
    return directory


def spread(network: Any) -> Any:
    """Make weights so large that every word and every pixel matters."""
    with torch.no_grad():
        for weight in network.parameters():
            if weight.ndim > 1:
                weight.normal_(std=0.5)
    return network


def saved(directory: Path, network: Any, *more: str) -> Path:
    """Save a network, its tokenizer, with *more* words, and its image processor."""
    network.save_pretrained(directory)
    words = directory / "vocab.txt"
    words.write_text("\n".join((*SPECIAL, *WORDS, *more)))
    BertTokenizerFast(str(words)).save_pretrained(directory)
    BlipImageProcessorPil(size={"height": SIDE, "width": SIDE}).save_pretrained(directory)
    return directory
