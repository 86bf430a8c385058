"""
Reward models on a vision-language model of Qwen: chats, pixels, and the states of reward tokens.

    pictures -> patches -> vision tower -> language model, with the text -> states of the reward tokens

`VlReward` loads the model of any family.  Each family has a head of its own on these states, in float32;
`head_of` builds that of HPSv3, which others have too.  Networks and patches are those of transformers.
"""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, ClassVar, NamedTuple, Self

import PIL.Image
import torch
from tokenizers import AddedToken, Tokenizer
from torch import nn
from transformers.models.qwen2_vl.image_processing_pil_qwen2_vl import smart_resize

from models.checkpoints.files import (
    CONFIG,
    PREPROCESSOR,
    PROCESSOR,
    TOKENIZER_FILES,
    first_weights,
    read_json,
)
from models.checkpoints.info import info_of
from models.checkpoints.locate import (
    ModelArguments,
    download,
    downloaded,
    local,
    locate,
    model_arguments,
)
from models.checkpoints.pretrained import load_processor, load_state, load_tokenizer, thread_safe
from models.checkpoints.weights import DTYPES, mismatch, read_file, translated
from models.core.contract import CheckpointError, ModelError
from models.core.family import Family
from models.core.messages import in_short
from models.core.settings import TunedSettings
from models.families.inputs import padded
from models.images.image import Image

CHAT_TEMPLATE = "chat_template.json"  # the processor has it, and the tokenizer the same one
BASE_FILES = (CONFIG, PREPROCESSOR, PROCESSOR, CHAT_TEMPLATE, *TOKENIZER_FILES)
PLACEHOLDER = "\ufffctext\ufffc"  # stands for the text while the chat template is rendered
PROMPT_FIELD = "{text_prompt}"  # an instruction has it once

SIDE_FACTOR = 28  # sides are multiples of it, whatever patches the network takes; from the released codes
IMAGE_PIXELS = 256 * SIDE_FACTOR * SIDE_FACTOR  # pixels of a picture, about 448 x 448

# Names in older and newer checkpoints of transformers to those of the network without its last layer.
TENSOR_NAMES = (
    (r"^model\.(visual|language_model)\.", r"\1."),
    (r"^model\.", "language_model."),
)
UNUSED_TENSORS = re.compile(r"lm_head\.weight")

REWARD_TOKEN = "<|Reward|>"  # the reward token of models with one for each chat
HEAD_PREFIX = "rm_head."
HIDDEN_WIDTHS = (1024, 16)  # outputs of the layers before the last
OUTPUT_WIDTH = 2  # the mean, and the logarithm of the deviation


def located(settings: TunedSettings, base: str, files: Sequence[str]) -> tuple[ModelArguments, Path]:
    """
    Return the model's arguments, and the directory of the base model's files.

    Args:
        base: the hub's repository of the base model, for a checkpoint of the hub.
        files: to download from the checkpoint's repository.

    Raises:
        CheckpointError: there is no such directory or repository.
    """
    here = local(settings.checkpoint) is not None
    arguments = model_arguments(settings) if here else downloaded(settings, files)
    if settings.base:
        return arguments, locate(settings.base).directory
    return arguments, arguments["directory"] if here else download(base, "", BASE_FILES)


# --- texts --------------------------------------------------------------------------------------


class Chat:
    """
    Chats of one message, with pictures or a video before an instruction, as token ids; thread-safe.

    Args:
        directory: of the base model.
        instruction: with `PROMPT_FIELD` and the reward tokens.
        rewards: the reward tokens, which follow the tokenizer's own.
        media: the type of each part before the text: "image" or "video".

    Attributes:
        size: number of tokens of the vocabulary, with the reward tokens.

    Raises:
        CheckpointError: the tokenizer or its chat template cannot be used.
    """

    def __init__(
        self, directory: Path, instruction: str, rewards: Sequence[str], media: Sequence[str]
    ) -> None:
        loaded = load_tokenizer(directory)
        if not loaded.is_fast:
            raise CheckpointError(f"{directory}: needs a fast tokenizer")
        self._special, self._plain = (extended(loaded, rewards) for _ in range(2))
        self._plain.encode_special_tokens = True  # "<|im_end|>" in a prompt is text
        self.size = self._special.get_vocab_size()
        vocabulary = self._special.get_vocab()
        self._ids = {token: vocabulary[token] for token in rewards}
        before, after = rendered(loaded, directory, media)
        self._before, self._after = (
            self._special.encode(text, add_special_tokens=False).ids for text in (before, after)
        )
        pattern = "|".join(map(re.escape, rewards))
        self._parts = re.split(f"({pattern})", instruction)

    def encode(self, prompt: str, counts: Sequence[int], pads: Sequence[int]) -> tuple[list[int], list[int]]:
        """
        Return the ids of a chat, and the places of its reward tokens in order.

        Args:
            counts: of tokens for each picture or video.
            pads: for each, the id that the template has once, and the chat so often.
        """
        ids, left = list[int](), [*zip(pads, counts, strict=True)]
        for id in self._before:
            if left and id == left[0][0]:
                ids += [id] * left.pop(0)[1]
            else:
                ids.append(id)
        places = []
        for part in self._parts:
            if part in self._ids:
                places.append(len(ids))
                ids.append(self._ids[part])
            else:
                ids += self._plain.encode(part.replace(PROMPT_FIELD, prompt), add_special_tokens=False).ids
        return [*ids, *self._after], places


def extended(loaded: Any, rewards: Sequence[str]) -> Tokenizer:
    """Return a copy of the tokenizer's backend with the *rewards* as special tokens."""
    tokenizer = thread_safe(loaded)
    tokenizer.add_special_tokens([AddedToken(token, special=True, normalized=False) for token in rewards])
    return tokenizer


def rendered(loaded: Any, directory: Path, media: Sequence[str]) -> tuple[str, str]:
    """Return the chat before and after its text.  Raises `CheckpointError`."""
    path = directory / CHAT_TEMPLATE
    template = read_json(path).get("chat_template") if path.is_file() else None
    content = [*({"type": kind} for kind in media), {"type": "text", "text": PLACEHOLDER}]
    messages = [{"role": "user", "content": content}]
    try:
        text: str = loaded.apply_chat_template(
            messages, chat_template=template, tokenize=False, add_generation_prompt=True
        )
    except Exception as exc:  # no template, or a broken one
        raise CheckpointError(f"{directory}: its chat template cannot be used: {in_short(exc)}") from exc
    before, found, after = text.partition(PLACEHOLDER)
    if not found:
        raise CheckpointError(f"{directory}: its chat template has no place for the text")
    return before, after


# --- pictures -----------------------------------------------------------------------------------


class Patches(NamedTuple):
    """
    A picture or video for the vision tower.

    Attributes:
        pixels: of each patch: (patches, numbers), float32.
        grid: the number of patches in time, in height and in width.
    """

    pixels: torch.Tensor
    grid: tuple[int, int, int]


class PatchPixels:
    """
    Pictures as patches: Pillow's bicubic resize to about *pixels*, then the image processor of transformers.

    Args:
        directory: of the base model.
        kind: class of the image processor.

    Raises:
        CheckpointError: the processor cannot be loaded.
    """

    def __init__(self, directory: Path, kind: Any, pixels: int = IMAGE_PIXELS) -> None:
        self._processor, self._pixels = load_processor(kind, directory), pixels

    def of(self, image: Image) -> Patches:
        """Return the patches of *image*, computed once.  Raises `ModelError` for a strip."""
        patches: Patches = image.once(self, self._made)
        return patches

    def _made(self, rgb: PIL.Image.Image) -> Patches:
        made = self._processor(images=self._resized(rgb))
        [(t, h, w)] = [[*map(int, grid)] for grid in made["image_grid_thw"]]
        return Patches(torch.as_tensor(made["pixel_values"]), (t, h, w))

    def _resized(self, rgb: PIL.Image.Image) -> PIL.Image.Image:
        height, width = sides(rgb.size, self._pixels, self._pixels)
        return rgb.resize((width, height), PIL.Image.Resampling.BICUBIC)


def sides(size: tuple[int, int], least: int, most: int) -> tuple[int, int]:
    """
    Return the height and width to resize a picture to: multiples of `SIDE_FACTOR`, *least* to *most* pixels.

    Raises:
        ModelError: one side is more than 200 times the other.
    """
    width, height = size
    try:
        rows, columns = smart_resize(height, width, SIDE_FACTOR, least, most)
    except ValueError:
        raise ModelError("one side of the picture is more than 200 times the other") from None
    return int(rows), int(columns)


# --- the network --------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Chatted:
    """
    One chat for the network.

    Attributes:
        ids: token ids.
        places: of the reward tokens.
        media: pictures, or one video, in the order of the chat.
    """

    ids: Sequence[int]
    places: Sequence[int]
    media: Sequence[Patches] = field(repr=False)

    @property
    def cost(self) -> int:
        """The number of tokens and patches."""
        return len(self.ids) + sum(len(each.pixels) for each in self.media)


def body(tensors: Mapping[str, torch.Tensor]) -> dict[str, torch.Tensor]:
    """Return the tensors of the network without heads, by its own names."""
    return {
        translated(name, TENSOR_NAMES): tensor
        for name, tensor in tensors.items()
        if not UNUSED_TENSORS.fullmatch(name)
    }


class VlNetwork:
    """
    A vision-language model of Qwen that returns the states of reward tokens.

    Args:
        kind: class of transformers, without the language model's head.
        model_type: in the base model's configuration.
        directory: of the base model.
        tensors: weights by the names of `body`.
        place: name of the weights in errors.
        words: number of tokens of the vocabulary.
        flat: tokens of pictures have the positions of a text's, as in released code that calls the language
            model with embeddings alone; otherwise positions in three dimensions.
        video: the media are videos.

    Raises:
        CheckpointError: the configuration is another model's, or the weights don't fit it.
    """

    def __init__(
        self,
        kind: Any,
        model_type: str,
        directory: Path,
        tensors: Mapping[str, torch.Tensor],
        place: Path,
        *,
        words: int,
        dtype: str,
        device: str,
        flat: bool = False,
        video: bool = False,
    ) -> None:
        self.dtype, self._device, self._flat, self._video = DTYPES[dtype], torch.device(device), flat, video
        self.module = load_state(kind, directory, tensors, place, self.dtype, model_type, words=words)
        self.module.to(self._device).eval()
        config = self.module.config
        self.width: int = config.text_config.hidden_size
        self._context: int = config.text_config.max_position_embeddings
        self._merged: int = config.vision_config.spatial_merge_size**2
        self._image, self._film = config.image_token_id, config.video_token_id

    def chatted(self, chat: Chat, prompt: str, media: Sequence[Patches]) -> Chatted:
        """Return a chat about *media*.  Raises `ModelError` if it is longer than the model's context."""
        counts = [len(each.pixels) // self._merged for each in media]
        pad = self._film if self._video else self._image
        ids, places = chat.encode(prompt, counts, [pad] * len(media))
        if len(ids) > self._context:
            raise ModelError(
                f"the prompt is too long: {len(ids)} tokens, and the model takes {self._context}"
            )
        return Chatted(ids, places, media)

    def states(self, chats: Sequence[Chatted]) -> torch.Tensor:
        """Return the states of the reward tokens of each chat: (N, tokens, width), float32."""
        ids, mask = padded([chat.ids for chat in chats], self._device)
        media = [each for chat in chats for each in chat.media]
        pixels = torch.cat([each.pixels for each in media]).to(self._device, self.dtype)
        grids = torch.tensor([each.grid for each in media], device=self._device)
        names = (
            ("pixel_values_videos", "video_grid_thw") if self._video else ("pixel_values", "image_grid_thw")
        )
        kinds = (ids == self._image).int() + 2 * (ids == self._film).int()
        inputs: dict[str, Any] = dict(zip(names, (pixels, grids), strict=True))
        if self._flat:
            inputs["position_ids"] = (mask.cumsum(-1) - 1).clamp(min=0).expand(3, *mask.shape)
        found = self.module(
            input_ids=ids, attention_mask=mask, mm_token_type_ids=kinds, use_cache=False, **inputs
        ).last_hidden_state
        places = torch.tensor([chat.places for chat in chats], device=self._device)
        rows = torch.arange(len(chats), device=self._device)[:, None]
        states: torch.Tensor = found[rows, places].float()
        return states


# --- the head -----------------------------------------------------------------------------------


def head_of(
    tensors: Mapping[str, torch.Tensor], width: int, place: Path, prefix: str = HEAD_PREFIX
) -> nn.Module:
    """
    Build the head on states of *width* numbers from the tensors whose names begin with *prefix*.

    Raises:
        CheckpointError: they do not fit.
    """
    first, second = HIDDEN_WIDTHS
    # The third is a dropout in training.
    layers = [nn.Linear(width, first), nn.ReLU(), nn.Identity(), nn.Linear(first, second), nn.ReLU()]
    head = nn.Sequential(*layers, nn.Linear(second, OUTPUT_WIDTH))
    held = {name.removeprefix(prefix): each for name, each in tensors.items() if name.startswith(prefix)}
    if wrong := mismatch(held, head.state_dict()):
        raise CheckpointError(f"{place}: not a head of {width} numbers ({prefix}…): {wrong}")
    head.load_state_dict(held)
    return head.float()


# --- the model ----------------------------------------------------------------------------------


class VlReward:
    """
    A loaded reward model; a family declares what its released code has.

    Args as in `ModelArguments`, and the directory of the base model's files if that is another one.  Raises
    `CheckpointError`.

    Attributes:
        family: declaration of the family.
        base_repository: the base model's, on the hub.
        weights: names of the file with the weights, of which the first that exists is read.
        settings_files: names of other files of the checkpoint on which an output depends.
        network_class: class of transformers, without the language model's head.
        model_type: in the base model's configuration.
        processor_class: class of the image processor.
        instructions: one for each chat about a call, with `PROMPT_FIELD` and the reward tokens.
        reward_tokens, media, flat: of `Chat` and `VlNetwork`.
        head_names: beginnings of the names of the tensors that are not the network's.
        network: the network.
        head: what maps states of reward tokens to outputs.
    """

    family: ClassVar[Family]
    base_repository: ClassVar[str]
    weights: ClassVar[tuple[str, ...]]
    settings_files: ClassVar[tuple[str, ...]] = ()
    network_class: ClassVar[Any]
    model_type: ClassVar[str]
    processor_class: ClassVar[Any]
    instructions: ClassVar[tuple[str, ...]]
    reward_tokens: ClassVar[tuple[str, ...]] = (REWARD_TOKEN,)
    media: ClassVar[tuple[str, ...]] = ("image",)
    flat: ClassVar[bool] = True
    head_names: ClassVar[tuple[str, ...]] = (HEAD_PREFIX,)

    head: nn.Module

    def __init__(
        self,
        directory: Path,
        base: Path | None = None,
        *,
        dtype: str,
        device: str,
        id: str = "",
        revision: str = "",
    ) -> None:
        base = base or directory
        self._read_settings(directory)
        [path] = self.weights_files(directory)
        self._chats = [Chat(base, text, self.reward_tokens, self.media) for text in self.instructions]
        self._pixels = self._pixels_in(base)
        tensors = self._tensors_in(path, dtype)
        rest = {name: each for name, each in tensors.items() if not name.startswith(self.head_names)}
        self.network = VlNetwork(
            self.network_class,
            self.model_type,
            base,
            body(rest),
            path,
            words=self._chats[0].size,
            dtype=dtype,
            device=device,
            flat=self.flat,
            video="video" in self.media,
        )
        self.head = self._head_in(tensors, path).to(device).eval()
        files = [*self.settings_files, *(str(base / name) for name in BASE_FILES)]
        self.info = info_of(self.family, directory, files, dtype, device, id, revision, weights=[path])

    @classmethod
    def from_settings(cls, settings: TunedSettings) -> Self:
        """Load the model of a table.  Raises `CheckpointError`."""
        arguments, base = located(settings, cls.base_repository, cls.downloads())
        return cls(base=base, **arguments)

    @classmethod
    def weights_files(cls, directory: Path) -> list[Path]:
        """Return the file with the weights.  Raises `CheckpointError`."""
        return [first_weights(directory, cls.weights)]

    @classmethod
    def downloads(cls) -> Sequence[str]:
        """Return the names of the files to download from the checkpoint's repository; may be patterns."""
        return cls.weights

    def _read_settings(self, directory: Path) -> None:
        """Read a checkpoint's own settings, if its layout has some.  Raises `CheckpointError`."""

    def _pixels_in(self, base: Path) -> PatchPixels:
        """Return how pictures become patches, by the processor in *base*.  Raises `CheckpointError`."""
        return PatchPixels(base, self.processor_class)

    def _tensors_in(self, path: Path, dtype: str) -> Mapping[str, torch.Tensor]:
        """Return the tensors in *path* by the names of `body` and the head.  Raises `CheckpointError`."""
        return read_file(path, "cpu", mapped=True)

    def _head_in(self, tensors: Mapping[str, torch.Tensor], path: Path) -> nn.Module:
        """Build the head from the *tensors* in *path*.  Raises `CheckpointError` if they don't fit."""
        return head_of(tensors, self.network.width, path)
