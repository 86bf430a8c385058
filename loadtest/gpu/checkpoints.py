"""
Checkpoints in the layouts that are published, so that the real loaders read them.

Weights are random; vLLM makes its own, so its checkpoints have none.
"""

import json
import shutil
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import open_clip
import torch
from safetensors.torch import save_file
from tokenizers import Tokenizer as Pieces
from tokenizers import decoders, pre_tokenizers, trainers
from tokenizers.models import BPE
from transformers import (
    CLIPConfig,
    CLIPImageProcessor,
    LlavaConfig,
    LlavaProcessor,
    PretrainedConfig,
    PreTrainedTokenizerFast,
    Qwen2Config,
)

from loadtest.corpus import QUESTIONS
from loadtest.forward import DEMO, default_dtype, random_network
from loadtest.gpu.bench import Bench
from loadtest.gpu.geometry import QUESTION_LLM, VLM
from models.checkpoints.files import read_json
from models.families.clip.transformers_layout import open_clip_config
from models.families.clip_flant5.network import ALIASES
from models.families.clip_flant5.tokens import T5Tokenizer
from service.questions.styles.dsg import INSTRUCTIONS

TOWER = "vision_tower"
COMPLETE = "complete"  # a file that is written last
PAD, START, END, IMAGE = "<pad>", "<s>", "</s>", "<image>"
ANSWERS = ("Yes", "No")
MAX_PIECES = 1500  # pieces of the tokenizer; the rest of a vocabulary is never written
CHAT = """\
{% for message in messages %}{{ message['role'] | upper }}: {% for part in message['content'] %}\
{% if part['type'] == 'image' %}<image>
{% else %}{{ part['text'] }}
{% endif %}{% endfor %}{% endfor %}ASSISTANT: """


def flant5(bench: Bench) -> Path:
    """Return the directory of the CLIP-FlanT5 that is served; write it if it is not there."""
    size, (config, tower) = next(iter(bench.geometry.flant5.items()))
    directory = bench.folder / f"clip-flant5-{size.lower()}-{config['d_model']}"
    if (directory / COMPLETE).exists():
        return directory
    shutil.rmtree(directory, ignore_errors=True)
    shutil.copytree(DEMO, directory, ignore=shutil.ignore_patterns("*.safetensors", "vocabulary.txt"))
    pieces = T5Tokenizer(directory / "spiece.model", extra_ids=0).size
    change(directory / "tokenizer_config.json", extra_ids=config["vocab_size"] - pieces)
    change(directory / "config.json", **config)
    change(directory / TOWER / "config.json", **tower)
    side = tower["image_size"]
    sizes = {"size": {"shortest_edge": side}, "crop_size": {"height": side, "width": side}}
    change(directory / TOWER / "preprocessor_config.json", **sizes)
    network = random_network(config, tower, bench.device, bench.torch_dtype)
    write(directory / "model.safetensors", {
        name.removeprefix("t5.").replace(f"{TOWER}.", f"{TOWER}.{TOWER}.vision_model.", 1): tensor
        for name, tensor in network.state_dict().items()
        if name not in ALIASES
    })  # fmt: skip
    (directory / COMPLETE).touch()
    return directory


def clip(bench: Bench, name: str) -> Path:
    """Return the directory of a CLIP, by its name in the geometry, in open_clip's layout; likewise."""
    config = CLIPConfig(**bench.geometry.encoders[name])
    directory = bench.folder / f"{name.partition(' (')[0].replace('/', '-').replace(' ', '-').lower()}"
    directory = directory.with_name(f"{directory.name}-{config.vision_config.hidden_size}")
    if (directory / COMPLETE).exists():
        return directory
    shutil.rmtree(directory, ignore_errors=True)
    directory.mkdir(parents=True)
    shape = open_clip_config(directory, config)
    (directory / "open_clip_config.json").write_text(json.dumps({"model_cfg": shape, "preprocess_cfg": {}}))
    with torch.device(bench.device), default_dtype(bench.torch_dtype):
        network: Any = open_clip.CLIP(**shape)
    write(directory / "open_clip_model.safetensors", network.state_dict())
    (directory / COMPLETE).touch()
    return directory


def question_llm(bench: Bench) -> tuple[Path, PretrainedConfig]:
    """Write a question LLM for vLLM; return its directory and its configuration."""
    words = pieces()
    config = Qwen2Config(
        **bench.geometry.served[QUESTION_LLM],
        architectures=["Qwen2ForCausalLM"],
        bos_token_id=words.bos_token_id,
        eos_token_id=words.eos_token_id,
        tie_word_embeddings=False,
    )
    directory = bench.folder / f"question-llm-{config.hidden_size}"
    config.save_pretrained(directory)
    words.save_pretrained(directory)
    return directory, config


def vlm(bench: Bench) -> tuple[Path, PretrainedConfig]:
    """Write a VLM for vLLM, likewise."""
    words, given = pieces(), bench.geometry.served[VLM]
    special = {"bos_token_id": words.bos_token_id, "eos_token_id": words.eos_token_id}
    config = LlavaConfig(
        text_config={
            **given["text_config"],
            **special,
            "model_type": "llama",
            "pad_token_id": words.pad_token_id,
        },
        vision_config={**given["vision_config"], "model_type": "clip_vision_model"},
        architectures=["LlavaForConditionalGeneration"],
        image_token_index=words.convert_tokens_to_ids(IMAGE),
    )
    tower = config.vision_config
    square = {"height": tower.image_size, "width": tower.image_size}
    processor = LlavaProcessor(
        CLIPImageProcessor(size={"shortest_edge": tower.image_size}, crop_size=square),
        words,
        patch_size=tower.patch_size,
        vision_feature_select_strategy=config.vision_feature_select_strategy,
        num_additional_image_tokens=1,  # the class token
        chat_template=CHAT,
    )
    directory = bench.folder / f"vlm-{config.text_config.hidden_size}"
    config.save_pretrained(directory)
    processor.save_pretrained(directory)
    return directory, config


def pieces() -> PreTrainedTokenizerFast:
    """Return a tokenizer of bytes and of the words that are sent: texts have as many tokens as usual."""
    made = Pieces(BPE())
    made.pre_tokenizer, made.decoder = pre_tokenizers.ByteLevel(add_prefix_space=False), decoders.ByteLevel()
    trainer = trainers.BpeTrainer(
        vocab_size=MAX_PIECES,
        special_tokens=[PAD, START, END, IMAGE],
        initial_alphabet=pre_tokenizers.ByteLevel.alphabet(),
        show_progress=False,
    )
    made.train_from_iterator([INSTRUCTIONS, *QUESTIONS], trainer)
    made.add_tokens([*ANSWERS])
    return PreTrainedTokenizerFast(
        tokenizer_object=made,
        pad_token=PAD,
        bos_token=START,
        eos_token=END,
        additional_special_tokens=[IMAGE],
        chat_template=CHAT,
    )


def write(file: Path, tensors: Mapping[str, torch.Tensor]) -> None:
    """Write *tensors* by name."""
    save_file({name: tensor.cpu().contiguous() for name, tensor in tensors.items()}, file)


def change(file: Path, **values: Any) -> None:
    """Set values of a JSON file."""
    file.write_text(json.dumps(read_json(file) | values, indent=2) + "\n")
