"""
The settings of a model by its name: a hub id, a directory, a name of open_clip, a demo model, or one behind
an OpenAI-compatible API.

A checkpoint is recognised by its configuration, never by code in it.
"""

import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from models.checkpoints.files import CONFIG, FETCHED_FIRST, OPEN_CLIP_CONFIG, read_json
from models.checkpoints.locate import HUB_ID, download, locate
from models.core.contract import CheckpointError
from models.core.settings import http_address
from models.families.clip_flant5 import PUBLISHED
from models.families.editreward import REPOSITORY as EDITREWARD
from models.families.hpsv3 import REPOSITORY as HPSV3
from models.families.hpsv3pp import REPOSITORY as HPSV3PP
from models.families.imagereward import REPOSITORY as IMAGEREWARD
from models.families.videoalign import REPOSITORY as VIDEOALIGN

Table = dict[str, Any]

DEMO = "demo:"
SERVED = "openai:"
SERVED_FAMILIES = {
    "questions": "openai",
    "vqa": "openai_vlm",
    "reward": "openai_reward",
    "embedding": "openai_embedding",
}
PICKSCORE = "yuvalkirstain/PickScore_v1"
HPSV2 = "xswu/HPSv2"
AESTHETIC = "trl-lib/ddpo-aesthetic-predictor"  # the head; the CLIP below it is OpenAI's
QUICK = "-quickgelu"  # at the end of the names of open_clip's architectures with this activation
NAME_AT_URL = re.compile(r"(?P<model>.+?)@(?P<url>https?://.*)", re.IGNORECASE | re.DOTALL)
SEES = re.compile(r"(?i)(?<![a-z])(vl|vlm|vision|llava|internvl|pixtral|molmo|omni)(?![a-z])")

KNOWN: Mapping[str, Table] = {
    **{name: {"role": "vqa", "family": "clip_flant5"} for name in PUBLISHED},
    PICKSCORE: {"role": "clip", "family": "open_clip"},
    HPSV2: {
        "role": "clip",
        "family": "open_clip",
        "model": "ViT-H-14",
        "pretrained": f"hf-hub:{HPSV2}@697403c78157020a1ae59d23f111aa58ced35b0a/HPS_v2.1_compressed.pt",
        "resize_mode": "longest",
        "id": "hps-v2.1",
    },
    IMAGEREWARD: {"role": "imagereward", "family": "imagereward"},
    EDITREWARD: {"role": "editreward", "family": "editreward"},
    VIDEOALIGN: {"role": "videoalign", "family": "videoalign"},
    HPSV3: {"role": "hpsv3", "family": "hpsv3"},
    HPSV3PP: {"role": "hpsv3pp", "family": "hpsv3pp"},
    AESTHETIC: {
        "role": "aesthetic",
        "family": "aesthetic",
        "model": "ViT-L-14-quickgelu",
        "pretrained": "openai",
        "head": f"hf-hub:{AESTHETIC}/aesthetic-model.pth",
    },
}

BY_MODEL_TYPE = {
    "clip": ("clip", "open_clip"),
    "siglip": ("clip", "transformers_clip"),
    "siglip2": ("clip", "transformers_clip"),
    "align": ("clip", "transformers_clip"),
    "clip_t5": ("vqa", "clip_flant5"),
    "instructblip": ("vqa", "instructblip"),
    "mask2former": ("detector", "mask2former"),
    "owlv2": ("detector", "owlv2"),
}
BY_ARCHITECTURE = {
    "ForImageTextRetrieval": ("itm", "blip_itm"),
    "Blip2ForConditionalGeneration": ("vqa", "instructblip"),
    "BlipForQuestionAnswering": ("vqa", "blip_vqa"),
    "ForSequenceClassification": ("nli", "transformers_nli"),
    "ForCausalLM": ("questions", "transformers"),
}
ACCEPTED = (
    "a hub id (owner/name), a directory, a name of open_clip (NAME:TAG), a metric that has weights of its"
    " own, demo:NAME, or [ROLE=]openai:NAME@URL with a ROLE of " + ", ".join(SERVED_FAMILIES)
)


def table_of(name: str) -> Table:
    """
    Return the table of the model *name*, with its `role` and `family`.

    The configuration of a hub id that is not known is downloaded.

    Raises:
        CheckpointAway: the hub can't be reached now.
        CheckpointError: *name* is not a model, or one of a kind that no family loads.
    """
    role, is_served, rest = name.partition(SERVED)
    if is_served and (not role or role.endswith("=")):
        return served(rest, role.removesuffix("="))
    if known := KNOWN.get(name):
        return {**known} if "model" in known else {**known, "checkpoint": name}
    if name.startswith(DEMO) or Path(name).expanduser().is_dir():
        return recognised(name, locate(name).directory)
    if HUB_ID.fullmatch(name):
        return recognised(name, download(name, "", FETCHED_FIRST))
    return by_open_clip_name(name)


def served(name: str, role: str) -> Table:
    """Return the table of `NAME@URL`, a model behind an API; by default its name suggests the *role*."""
    found = NAME_AT_URL.fullmatch(name)
    if found is None:  # the rest may hold a password
        raise CheckpointError(
            f"{SERVED}{name.partition('@')[0]}: must be {SERVED}NAME@URL, such as {SERVED}qwen@http://127.0.0.1:8001"
        )
    model, url = found["model"], found["url"]
    try:
        path = urlsplit(http_address(url)).path
    except ValueError as exc:
        raise CheckpointError(f"{SERVED}{model}@URL: the URL {exc}") from exc
    role = role or ("vqa" if SEES.search(model) else "questions")
    if role not in SERVED_FAMILIES:
        raise CheckpointError(f"{role}={SERVED}{model}: the role must be one of {', '.join(SERVED_FAMILIES)}")
    base = url.rstrip("/") + ("" if path.strip("/") else "/v1")
    return {"role": role, "family": SERVED_FAMILIES[role], "base_url": base, "model": model}


def by_open_clip_name(name: str) -> Table:
    """Return the table of open_clip's `NAME:TAG`; without a tag it is `openai`, if there is one."""
    import open_clip  # takes a second

    model, _, tag = name.partition(":")
    tags = open_clip.list_pretrained_tags_by_model(model)
    tag = tag or ("openai" if "openai" in tags else "")
    if model not in open_clip.list_models():
        raise CheckpointError(f"--model {name}: is not {ACCEPTED}")
    if tag not in tags:
        raise CheckpointError(
            f"--model {name}: add one of open_clip's tags, {model}:TAG; it has {', '.join(tags)}"
        )
    check_activation(name, model, tag)
    return {"role": "clip", "family": "open_clip", "model": model, "pretrained": tag}


def check_activation(name: str, model: str, tag: str) -> None:
    """Reject weights of another activation; open_clip warns after their download."""
    import open_clip

    quick = bool(open_clip.get_pretrained_cfg(model, tag).get("quick_gelu"))
    if quick == bool((open_clip.get_model_config(model) or {}).get("quick_gelu")):
        return
    other = f"{model}{QUICK}" if quick else model.removesuffix(QUICK)
    use = f"; use {other}:{tag}" if other in open_clip.list_models() else ""
    raise CheckpointError(
        f"--model {name}: the weights {tag} were trained {'with' if quick else 'without'} QuickGELU, unlike"
        f" this architecture{use}"
    )


def recognised(name: str, directory: Path) -> Table:
    """Return the table of the checkpoint *name*, whose configuration is in *directory*."""
    if (directory / OPEN_CLIP_CONFIG).is_file():
        return {"role": "clip", "family": "open_clip", "checkpoint": name}
    config = read_json(directory / CONFIG)
    kind, architectures = str(config.get("model_type")), config.get("architectures") or []
    ends = (
        given for end, given in BY_ARCHITECTURE.items() if any(str(a).endswith(end) for a in architectures)
    )
    found = BY_MODEL_TYPE.get("clip_t5" if "mm_projector_type" in config else kind) or next(ends, None)
    if found is None:
        raise CheckpointError(f"--model {name}: no family loads a checkpoint of model_type {kind!r}")
    role, family = found
    text = config.get("text_config")
    language = text.get("model_type") if isinstance(text, dict) else None
    if family == "instructblip" and language != "t5":
        raise CheckpointError(f"--model {name}: its language model must be a T5, not {language!r}")
    return {"role": role, "family": family, "checkpoint": name}
