"""
Reward models on a vision-language model of Qwen: chats, pixels, and the states of reward tokens.

    pictures -> patches -> vision tower -> language model, with the text -> states of the reward tokens

`VlReward` loads the model of any family.  Each family has a head of its own on these states, in float32;
`relu_head` builds that of HPSv3, which others have too.  Networks and patches are those of transformers.
"""

import re
from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, ClassVar, Self

import torch
from torch import nn

from models.checkpoints.files import first_weights
from models.checkpoints.info import info_of
from models.checkpoints.locate import (
    ModelArguments,
    download,
    downloaded,
    local,
    locate,
    model_arguments,
)
from models.checkpoints.pretrained import load_state
from models.checkpoints.weights import DTYPES, read_file, translated
from models.core.contract import Prepared
from models.core.family import Family
from models.core.outcomes import Reward
from models.core.settings import TunedSettings
from models.families.inputs import padded
from models.families.reward_heads import HEAD_PREFIX, relu_head
from models.families.vl_inputs import BASE_FILES, Patches, PatchPixels, VlTokenizer, check_length, expanded

PROMPT_FIELD = "{text_prompt}"  # an instruction has it once

# Names in older and newer checkpoints of transformers to those of the network without its last layer.
TENSOR_NAMES = (
    (r"^model\.(visual|language_model)\.", r"\1."),
    (r"^model\.", "language_model."),
)
UNUSED_TENSORS = re.compile(r"lm_head\.weight")

REWARD_TOKEN = "<|Reward|>"  # the reward token of models with one for each chat


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
        words: the base model's, with the reward tokens.
        instruction: with `PROMPT_FIELD` and the reward tokens.
        rewards: the reward tokens.
        media: the type of each part before the text: "image" or "video".

    Attributes:
        size: number of tokens of the vocabulary, with the reward tokens.

    Raises:
        CheckpointError: the chat template cannot be used.
    """

    def __init__(
        self, words: VlTokenizer, instruction: str, rewards: Sequence[str], media: Sequence[str]
    ) -> None:
        self._special, self._plain = words.special, words.plain
        self.size = self._special.get_vocab_size()
        vocabulary = self._special.get_vocab()
        self._ids = {token: vocabulary[token] for token in rewards}
        self._before, self._after = (
            self._special.encode(text, add_special_tokens=False).ids
            for text in words.around((*media, "text"))
        )
        pattern = "|".join(map(re.escape, rewards))
        self._parts = re.split(f"({pattern})", instruction)

    def encode(self, prompt: str, counts: Sequence[int], pad: int) -> tuple[list[int], list[int]]:
        """
        Return the ids of a chat, and the places of its reward tokens in order.

        Args:
            counts: of tokens for each picture or video.
            pad: id of such a token, which the template has once for each.
        """
        ids = expanded(self._before, counts, pad)
        places = []
        for part in self._parts:
            if part in self._ids:
                places.append(len(ids))
                ids.append(self._ids[part])
            else:
                ids += self._plain.encode(part.replace(PROMPT_FIELD, prompt), add_special_tokens=False).ids
        return [*ids, *self._after], places


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
        ids, places = chat.encode(prompt, counts, pad)
        check_length(len(ids), self._context)
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


# --- the model ----------------------------------------------------------------------------------


class VlReward(ABC):
    """
    A loaded reward model; a family declares what its released code has.

    Args as in `ModelArguments`, and the directory of the base model's files if that is another one.  Raises
    `CheckpointError`.

    Attributes:
        family: declaration of the family, with its base model.
        weights: names of the file with the weights, or a pattern; the first that exists is read, unless
            `weights_files` is overridden.
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
        words = VlTokenizer(base, self.reward_tokens)
        self._chats = [Chat(words, text, self.reward_tokens, self.media) for text in self.instructions]
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
        arguments, base = located(settings, cls.family.base, (*cls.settings_files, *cls.weights))
        return cls(base=base, **arguments)

    @abstractmethod
    def prepare(self, call: Any) -> Prepared:
        """Cut the images into patches and tokenise the prompt, as `Model.prepare`."""

    @abstractmethod
    def score(self, batch: Sequence[Prepared]) -> list[Reward]:
        """Run the network once on the chats of all calls, as `Model.score`."""

    @abstractmethod
    def example(self) -> Any:
        """Return a small call, as `Model.example`."""

    @classmethod
    def weights_files(cls, directory: Path) -> list[Path]:
        """Return the file with the weights.  Raises `CheckpointError`."""
        return [first_weights(directory, cls.weights)]

    def _read_settings(self, directory: Path) -> None:  # noqa: B027, most have none
        """Read a checkpoint's own settings, if its layout has some.  Raises `CheckpointError`."""

    def _pixels_in(self, base: Path) -> PatchPixels:
        """Return how pictures become patches, by the processor in *base*.  Raises `CheckpointError`."""
        return PatchPixels(base, self.processor_class)

    def _tensors_in(self, path: Path, dtype: str) -> Mapping[str, torch.Tensor]:
        """Return the tensors in *path* by the names of `body` and the head.  Raises `CheckpointError`."""
        return read_file(path, "cpu", mapped=True)

    def _head_in(self, tensors: Mapping[str, torch.Tensor], path: Path) -> nn.Module:
        """Build the head from the *tensors* in *path*.  Raises `CheckpointError` if they don't fit."""
        return relu_head(tensors, self.network.width, path)
