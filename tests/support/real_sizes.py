"""
Checkpoints of the sizes that are served on GPUs, without their weights.

Configurations are those that the models are published with.  Tokenizers are small ones of the tests, since
only the number of tokens counts.
"""

import json
import shutil
from pathlib import Path
from typing import Any

from transformers import (
    CLIPConfig,
    DebertaV2Config,
    Mask2FormerConfig,
    Mask2FormerImageProcessor,
    Owlv2Config,
    Owlv2ImageProcessor,
    PretrainedConfig,
    Qwen3Config,
    SwinConfig,
    T5Config,
)

from models.checkpoints.locate import DEMO
from models.families.clip_flant5 import XL, XXL
from models.families.clip_flant5.layout import VIT_L_14_336
from models.families.clip_flant5.tokens import T5Tokenizer
from tests.support import detector_checkpoints
from tests.support.flant5_checkpoints import GOLDEN, configure
from tests.support.nli_checkpoints import LABELS, save_words

LAYERS = {
    *("layers", "num_layers", "num_decoder_layers", "num_hidden_layers"),
    *("encoder_layers", "decoder_layers"),
}
STAGES = "depths"  # of a Swin, each with so many layers
FEW = 3  # the last of CLIP-FlanT5's vision tower is not run
FLANT5 = {"xl": XL.config, "xxl": XXL.config}
DEBERTA = DebertaV2Config(
    architectures=["DebertaV2ForSequenceClassification"],
    vocab_size=128_100,
    hidden_size=1024,
    num_hidden_layers=24,
    num_attention_heads=16,
    intermediate_size=4096,
    type_vocab_size=0,
    layer_norm_eps=1e-7,
    relative_attention=True,
    position_buckets=256,
    norm_rel_ebd="layer_norm",
    share_att_key=True,
    pos_att_type=["p2c", "c2p"],
    position_biased_input=False,
    id2label=LABELS,
    label2id={label: number for number, label in LABELS.items()},
)
TRUE = T5Config(
    architectures=["T5ForConditionalGeneration"],
    vocab_size=32_128,
    d_model=4096,
    d_kv=64,
    d_ff=10_240,
    num_layers=24,
    num_heads=64,
    feed_forward_proj="gated-gelu",
    tie_word_embeddings=False,
    decoder_start_token_id=0,
)
QWEN = Qwen3Config(
    architectures=["Qwen3ForCausalLM"],
    vocab_size=151_936,
    hidden_size=2560,
    intermediate_size=9728,
    num_hidden_layers=36,
    num_attention_heads=32,
    num_key_value_heads=8,
    head_dim=128,
    max_position_embeddings=262_144,
    tie_word_embeddings=True,
)
VIT_H_14 = CLIPConfig(
    projection_dim=1024,
    text_config={
        "hidden_size": 1024,
        "intermediate_size": 4096,
        "num_hidden_layers": 24,
        "num_attention_heads": 16,
        "hidden_act": "gelu",
    },
    vision_config={
        "hidden_size": 1280,
        "intermediate_size": 5120,
        "num_hidden_layers": 32,
        "num_attention_heads": 16,
        "patch_size": 14,
        "hidden_act": "gelu",
    },
)

SWIN_S = SwinConfig(
    embed_dim=96,
    depths=[2, 2, 18, 2],
    num_heads=[3, 6, 12, 24],
    out_features=["stage1", "stage2", "stage3", "stage4"],
)
COCO = {number: str(number) for number in range(80)}
OWLV2 = Owlv2Config(vision_config={"image_size": 960, "patch_size": 16})


def flant5(directory: Path, size: str) -> Path:
    """CLIP-FlanT5 in the published layout, with the known vision tower and as many pieces."""
    left_out = shutil.ignore_patterns("images", "*.bin", "golden.json", "vision_tower")
    shutil.copytree(GOLDEN, directory, ignore=left_out)
    (directory / "model.safetensors").touch()
    config = FLANT5[size]
    pieces = T5Tokenizer(directory / "spiece.model", extra_ids=0).size
    configure(directory, "tokenizer_config.json", extra_ids=config["vocab_size"] - pieces)
    return configure(directory, **config)


def nli(directory: Path, config: PretrainedConfig) -> Path:
    """An NLI model of transformers."""
    return save_words(without_weights(directory, config))


def question_llm(directory: Path) -> Path:
    """A Qwen3 of four billion parameters, with the demo's tokenizer."""
    shutil.copytree(DEMO / "question_llm", directory)
    (directory / "model.safetensors").unlink()
    return without_weights(directory, QWEN)


def mask2former(directory: Path) -> Path:
    """Mask2Former with Swin-S, of 80 classes."""
    labels = {label: number for number, label in COCO.items()}
    config = Mask2FormerConfig(backbone_config=SWIN_S, id2label=COCO, label2id=labels)
    Mask2FormerImageProcessor(size_divisor=32).save_pretrained(directory)
    return without_weights(directory, config)


def owlv2(directory: Path) -> Path:
    """An OWLv2 of base size, with a few words."""
    Owlv2ImageProcessor().save_pretrained(directory)
    return detector_checkpoints.save_words(without_weights(directory, OWLV2))


def without_weights(directory: Path, config: PretrainedConfig) -> Path:
    """What the start looks at before it reads weights: the configuration, and a file of them."""
    config.save_pretrained(directory)
    (directory / "model.safetensors").touch()
    return directory


def few_layers(directory: Path) -> Path:
    """The same checkpoint with few layers in each of its stacks."""
    if (directory / "spiece.model").exists():  # of CLIP-FlanT5, whose tower is known by name
        tower = directory / "vision_tower"
        tower.mkdir()
        (tower / "config.json").write_text(json.dumps(shallow(VIT_L_14_336)))
    config = json.loads((directory / "config.json").read_text())
    return configure(directory, **{**shallow(config), "layer_types": None})


def shallow(config: dict[str, Any]) -> dict[str, Any]:
    """A configuration, and those within it, with few layers."""
    few = {name: FEW for name in LAYERS} | {STAGES: [1] * len(config.get(STAGES, ()))}
    return {
        name: few[name] if name in few else shallow(value) if isinstance(value, dict) else value
        for name, value in config.items()
    }
