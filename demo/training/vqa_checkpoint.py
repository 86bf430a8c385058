"""The demo CLIP-FlanT5's sizes, and its checkpoint in the published layout."""

import json
from pathlib import Path

from safetensors.torch import save_file

from demo.training.vqa_samples import PATCH, SIZE
from models.families.clip_flant5.layout import EOS, PAD, Tokenizer
from models.families.clip_flant5.network import Network
from models.images.pixels import CLIP_MEAN, CLIP_STD

WIDTH, VISION_WIDTH = 96, 128

VISION = {
    "model_type": "clip_vision_model",
    "architectures": ["CLIPVisionModel"],
    "hidden_size": VISION_WIDTH,
    "intermediate_size": 3 * VISION_WIDTH,
    "num_hidden_layers": 5,  # the last one is there, as in the published tower, and not used
    "num_attention_heads": 4,
    "num_channels": 3,
    "image_size": SIZE,
    "patch_size": PATCH,
    "projection_dim": VISION_WIDTH,
    "hidden_act": "quick_gelu",
}
PREPROCESSOR = {
    "image_processor_type": "CLIPImageProcessor",
    "crop_size": {"height": SIZE, "width": SIZE},
    "size": {"shortest_edge": SIZE},
    "resample": 3,
    "rescale_factor": 1 / 255,
    "do_center_crop": True,
    "do_convert_rgb": True,
    "do_normalize": True,
    "do_rescale": True,
    "do_resize": True,
    "image_mean": list(CLIP_MEAN),
    "image_std": list(CLIP_STD),
}


def configuration(vocabulary: int) -> dict[str, object]:
    """Return `config.json` with the keys of the published checkpoints."""
    return {
        "model_type": "clip_t5",
        "architectures": ["CLIPT5ForConditionalGeneration"],
        "vocab_size": vocabulary,
        "d_model": WIDTH,
        "d_kv": 24,
        "d_ff": 256,
        "num_layers": 5,
        "num_decoder_layers": 2,
        "num_heads": 4,
        "relative_attention_num_buckets": 32,
        "relative_attention_max_distance": 128,
        "dropout_rate": 0.0,
        "layer_norm_epsilon": 1e-6,
        "feed_forward_proj": "gated-gelu",
        "dense_act_fn": "gelu_new",
        "is_gated_act": True,
        "is_encoder_decoder": True,
        "tie_word_embeddings": False,
        "pad_token_id": PAD,
        "eos_token_id": EOS,
        "decoder_start_token_id": PAD,
        "use_cache": True,
        "mm_vision_tower": "demo",
        "mm_hidden_size": VISION_WIDTH,
        "mm_projector_type": "mlp2x_gelu",
        "mm_vision_select_layer": -2,
        "mm_vision_select_feature": "patch",
        "mm_use_im_start_end": False,
        "mm_use_im_patch_token": False,
        "use_mm_proj": True,
        "image_aspect_ratio": "pad",
    }


def write(network: Network, directory: Path, tokenizer: Tokenizer) -> None:
    """Save in the published layout (weights as safetensors)."""
    prefix = {"t5.": "", "vision_tower.": "vision_tower.vision_tower.vision_model."}
    tensors = {}
    for name, tensor in network.state_dict().items():
        if name.endswith("embed_tokens.weight"):
            continue
        for ours, published in prefix.items():
            if name.startswith(ours):
                name = published + name.removeprefix(ours)
                break
        tensors[name] = tensor.clone()  # transformers ties lm_head to shared when it builds a T5
    save_file(tensors, directory / "model.safetensors", {"format": "pt"})
    tower = directory / "vision_tower"
    tower.mkdir(exist_ok=True)
    for path, content in (
        (directory / "config.json", configuration(tokenizer.size)),
        (tower / "config.json", VISION),
        (tower / "preprocessor_config.json", PREPROCESSOR),
    ):
        path.write_text(json.dumps(content, indent=2) + "\n")
