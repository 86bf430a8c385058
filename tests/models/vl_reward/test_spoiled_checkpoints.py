"""A reward model whose checkpoint does not fit is refused in one line, which names the file or the tensor."""

import pytest
import torch
from safetensors.torch import load_file, save_file

from models.core.contract import CheckpointError
from tests.models.contract.qwens import EDITREWARD, HPSV3, HPSV3PP, REWARDS, VIDEOALIGN
from tests.support.vl_checkpoints import configure, set_in


def removed(name):
    return lambda path: (path / name).unlink()


def cut(path):
    weights = path / "HPSv3.safetensors"
    weights.write_bytes(weights.read_bytes()[:1000])


def without(part):
    """No tensor with *part* in its name."""

    def spoil(path):
        weights = path / "HPSv3.safetensors"
        save_file({name: each for name, each in load_file(weights).items() if part not in name}, weights)

    return spoil


def replaced(kind, **tensors):
    """Other tensors; None removes one."""
    return lambda path: kind.make(path, **tensors)


def code(kind):
    """A file of PyTorch that would run code."""

    def spoil(path):
        weights = path / kind.own[-1]
        weights.unlink()
        torch.save({"head": print}, weights.with_suffix(".pth"))

    return spoil


def no_step(path):
    (path / "checkpoint-20" / "model.pth").rename(path / "adapter_model.pth")


def no_template(path):
    (path / "chat_template.json").write_text('{"chat_template": "{{ 1 }}"}')


OF_HPSV3 = [
    (removed("HPSv3.safetensors"), "no weights found"),
    (cut, "cannot be read as weights"),
    (without("layers.1.mlp"), "the weights don't fit .*missing: language_model.layers.1.mlp"),
    (without("rm_head.3"), "not a head of 32 numbers .*missing: 3"),
    (
        replaced(HPSV3, **{"rm_head.5.weight": torch.zeros(1, 16)}),
        "not a head of 32 numbers .*of another shape: 5.weight",
    ),
    (
        replaced(HPSV3, **{"model.embed_tokens.weight": torch.zeros(707, 32)}),
        "708 words, and the embeddings have 707 rows",
    ),
    (without("embed_tokens"), "708 words, and the embeddings have 0 rows"),
    (code(HPSV3), "something else than plain tensors"),
    (lambda path: configure(path, model_type="qwen2_5_vl"), "model_type is 'qwen2_5_vl', not 'qwen2_vl'"),
    (lambda path: configure(path, hidden_size=36), "the weights don't fit|cannot be built"),
    (no_template, "its chat template has no place for the text"),
    (removed("preprocessor_config.json"), "preprocessor_config.json: missing"),
    (lambda path: (path / "tokenizer.json").write_text("{"), "its tokenizer cannot be loaded"),
]
OF_HPSV3PP = [
    (removed("hpsv3++.pth"), "no weights found"),
    *(
        (replaced(HPSV3PP, **tensors), why)
        for tensors, why in [
            ({"cond_encoder.0.weight": None}, "cond_encoder.0.weight is missing"),
            ({"film_gen.2.bias": None}, "1 missing: film_gen.2.bias"),
            ({"cap_encoder.proj.weight": torch.zeros(5, 32)}, "of another shape: cap_encoder.proj.weight"),
            ({"rm_head.0.weight": None}, "not a head of 32 numbers"),
            ({"model.visual.pos_embed.weight": None}, "missing: visual.pos_embed.weight"),
            ({"model.more": torch.zeros(1)}, "unexpected: language_model.more"),
        ]
    ),
]
OF_EDITREWARD = [
    (removed("model.safetensors"), "no weights found"),
    *(
        (replaced(EDITREWARD, **tensors), why)
        for tensors, why in [
            ({"rm_heads.head_1.5.bias": None}, "not a head of 32 numbers .*missing: 5.bias"),
            ({"rm_heads.head_2.5.bias": torch.zeros(2)}, "but head_0, head_1, head_2"),
            ({"model.visual.merger.mlp.0.bias": None}, "missing: visual.merger.mlp.0.bias"),
        ]
    ),
]
LAYER = "base_model.model.model.layers.1.self_attn.q_proj."
NO_FIT = "LoRA of model.layers.1.self_attn.q_proj.weight does not fit"
OF_VIDEOALIGN = [
    (no_step, "no weights found .looked for checkpoint-"),
    (removed("model_config.json"), "model_config.json: missing"),
    (code(VIDEOALIGN), "something else than plain tensors"),
    (lambda path: configure(path, model_type="qwen2_5_vl"), "model_type is 'qwen2_5_vl', not 'qwen2_vl'"),
    *(
        (lambda path, section=section, values=values: set_in(path, section, **values), why)
        for section, values, why in [
            (
                "data_config",
                {"prompt_template_type": "simple"},
                "data_config.prompt_template_type: Input should be 'detailed_special'",
            ),
            ("model_config", {"output_dim": 1}, "model_config.output_dim: Input should be 3"),
            ("peft_lora_config", {"lora_r": 0}, "peft_lora_config.lora_r: .*greater than 0"),
            ("inference_config", {"MQ_std": 0}, "inference_config.MQ_std: Input should be greater than 0"),
        ]
    ),
    *(
        (replaced(VIDEOALIGN, **{name: None}), why)
        for name, why in [
            (f"{LAYER}lora_B.default.weight", NO_FIT),
            (f"{LAYER}base_layer.weight", NO_FIT),
            (f"{LAYER}base_layer.bias", "the weights don't fit .*missing"),
            ("base_model.model.rm_head.weight", r"rm_head.weight has the shape \(0,\), not \(3, 32\)"),
            ("base_model.model.model.embed_tokens.weight", "710 words, and the embeddings have 0 rows"),
        ]
    ),
]
SPOILED = {"hpsv3": OF_HPSV3, "hpsv3pp": OF_HPSV3PP, "editreward": OF_EDITREWARD, "videoalign": OF_VIDEOALIGN}


@pytest.mark.parametrize(
    ("name", "spoil", "why"), [(name, *case) for name, cases in SPOILED.items() for case in cases]
)
def test_a_spoiled_checkpoint_is_one_line(own, name, spoil, why):
    """Which names the table, and what is wrong."""
    path = own(name)
    spoil(path)
    with pytest.raises(CheckpointError, match=rf"^models\.left: .*({why})") as told:
        REWARDS[name].load(path)
    assert "\n" not in str(told.value)
