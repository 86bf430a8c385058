"""
ImageReward (Xu et al. 2023, "ImageReward: Learning and Evaluating Human Preferences for Text-to-Image
Generation"): BLIP encodes the prompt with attention to the image, and a head returns the reward.

Constants, lengths and pixels are those of the released code (package image-reward 1.5).
"""

import re
from collections.abc import Mapping, Sequence
from pathlib import Path

import torch
from tokenizers import BertWordPieceTokenizer, Tokenizer
from torch import nn
from transformers import BlipTextConfig, BlipTextModel, BlipVisionConfig, BlipVisionModel

from models.checkpoints.files import TOKENIZER, built, check_fixed, check_size, first_weights, read_json
from models.checkpoints.info import info_of
from models.checkpoints.locate import ModelArguments, download, downloaded, local, model_arguments
from models.checkpoints.pretrained import Unknown, check_words
from models.checkpoints.weights import DTYPES, mismatch, read_file, translated
from models.core.calls import RewardCall
from models.core.contract import CheckpointError, Prepared
from models.core.examples import grey
from models.core.messages import in_short
from models.core.outcomes import Reward
from models.core.settings import LocalSettings
from models.families.imagereward import FAMILY
from models.families.inputs import ImageAndText, distinct_images, padded
from models.families.reward_heads import linear_head, width_of
from models.images.pixels import Pixels

# --- the network: BLIP's two towers of transformers, and a head ---------------------------------

MED_CONFIG = "med_config.json"
WEIGHTS = ("ImageReward.safetensors", "ImageReward.pt")  # the first that exists is read
VOCABULARY = (TOKENIZER, "vocab.txt")
FILES = (MED_CONFIG, *WEIGHTS, *VOCABULARY)  # the revision of a directory is a digest of these

HEAD_WIDTH = 64  # numbers of a head of the vision tower, in each of BLIP's sizes
EPSILON = 1e-6  # the vision tower's layer norms have it
SIZE_SETTINGS = (
    "hidden_size",
    "intermediate_size",
    "max_position_embeddings",
    "num_attention_heads",
    "num_hidden_layers",
    "vocab_size",
)
FIXED_SETTINGS = {"add_cross_attention": True, "position_embedding_type": "absolute"}
TEXT_SETTINGS = (*SIZE_SETTINGS, "hidden_act", "layer_norm_eps", "pad_token_id")

VISION_PREFIX = "blip.visual_encoder."
# The names of `ImageRewardNetwork` to those of the file; all others are equal.
TENSOR_NAMES = (
    (r"^text\.", "blip.text_encoder."),
    (r"^vision\.embeddings\.class_embedding$", f"{VISION_PREFIX}cls_token"),
    (r"^vision\.embeddings\.position_embedding$", f"{VISION_PREFIX}pos_embed"),
    (r"^vision\.embeddings\.patch_embedding\.", f"{VISION_PREFIX}patch_embed.proj."),
    (r"^vision\.post_layernorm\.", f"{VISION_PREFIX}norm."),
    (r"^vision\.encoder\.layers\.", f"{VISION_PREFIX}blocks."),
    (r"\.self_attn\.projection\.", ".attn.proj."),
    (r"\.self_attn\.", ".attn."),
    (r"\.layer_norm", ".norm"),
)
# A buffer, and two projections for a loss of BLIP's training.
UNUSED_TENSORS = re.compile(r".*\.position_ids|blip\.(vision|text)_proj\.(weight|bias)")


def located(settings: LocalSettings) -> tuple[ModelArguments, Path | None]:
    """
    Return the model's arguments, and the directory of its tokenizer if that is another one.

    The published repository has no tokenizer, so BERT's is downloaded with it.  Raises `CheckpointError`.
    """
    if local(settings.checkpoint):
        return model_arguments(settings), None
    arguments = downloaded(settings, (MED_CONFIG, *WEIGHTS))
    return arguments, download(FAMILY.base, "", VOCABULARY)


def weights_files(directory: Path) -> list[Path]:
    """Return the file with the weights.  Raises `CheckpointError`."""
    return [first_weights(directory, WEIGHTS)]


def vision_config(path: Path, shapes: Mapping[str, torch.Tensor]) -> BlipVisionConfig:
    """Derive the vision tower's configuration from the shapes of its tensors.  Raises `CheckpointError`."""
    try:
        _, positions, width = shapes[f"{VISION_PREFIX}pos_embed"].shape
        patch = shapes[f"{VISION_PREFIX}patch_embed.proj.weight"].shape[-1]
        hidden = len(shapes[f"{VISION_PREFIX}blocks.0.mlp.fc1.weight"])
    except (KeyError, ValueError, IndexError, TypeError) as exc:
        raise CheckpointError(f"{path}: has no vision tower of BLIP ({VISION_PREFIX}…)") from exc
    side = round((positions - 1) ** 0.5)
    if side**2 != positions - 1 or width % HEAD_WIDTH:
        raise CheckpointError(
            f"{path}: the vision tower must have a square of patches and a multiple of {HEAD_WIDTH} numbers,"
            f" not {positions - 1} patches and {width} numbers"
        )
    return BlipVisionConfig(
        hidden_size=width,
        intermediate_size=hidden,
        num_hidden_layers=sum(name.endswith(".mlp.fc1.weight") for name in shapes),
        num_attention_heads=width // HEAD_WIDTH,
        image_size=side * patch,
        patch_size=patch,
        layer_norm_eps=EPSILON,
    )


def text_config(directory: Path, vision_width: int) -> BlipTextConfig:
    """Read the text tower's configuration from `med_config.json`.  Raises `CheckpointError`."""
    path = directory / MED_CONFIG
    given = read_json(path)
    for name in SIZE_SETTINGS:
        check_size(path, given, name)
    check_fixed(path, given, FIXED_SETTINGS)
    known = {name: given[name] for name in TEXT_SETTINGS if name in given} | {
        "encoder_hidden_size": vision_width
    }
    # "Decoder" is transformers' word for a network with cross-attention; ours is run as an encoder.
    return built(path, BlipTextConfig, {**known, "is_decoder": True, "bos_token_id": None})


# The released code normalises rewards by those of the training data.
REWARD_MEAN, REWARD_DEVIATION = 0.16717362830052426, 1.0333394966054072
MLP_PREFIX = "mlp."


class ImageRewardNetwork(nn.Module):
    """Pixels and token ids to rewards."""

    def __init__(self, vision: BlipVisionConfig, text: BlipTextConfig, head: nn.Module) -> None:
        super().__init__()
        self.vision = BlipVisionModel(vision)
        self.text = BlipTextModel(text, add_pooling_layer=False)
        self.mlp = head

    def forward(
        self, pixels: torch.Tensor, places: torch.Tensor, ids: torch.Tensor, mask: torch.Tensor
    ) -> torch.Tensor:
        """
        Compute rewards.

        Args:
            pixels: (P, 3, side, side) of distinct pictures.
            places: (N) index of the picture of each text.
            ids, mask: (N, T) tokens, and 1 at each token, 0 at padding.

        Returns:
            (N) rewards, float32.
        """
        seen = self.vision(pixel_values=pixels).last_hidden_state
        read = self.text(input_ids=ids, attention_mask=mask, encoder_hidden_states=seen[places])
        rewards: torch.Tensor = self.mlp(read.last_hidden_state[:, 0].float())[:, 0]
        return (rewards - REWARD_MEAN) / REWARD_DEVIATION


def load_network(directory: Path, dtype: torch.dtype) -> ImageRewardNetwork:
    """
    Load the network of *directory* with every weight; the head stays in float32.

    Raises:
        CheckpointError: a file is missing or broken, or the weights don't fit.
    """
    [path] = weights_files(directory)
    held = read_file(path, "cpu", mapped=True)
    tensors = {name: tensor for name, tensor in held.items() if not UNUSED_TENSORS.fullmatch(name)}
    head = {
        name.removeprefix(MLP_PREFIX): tensor
        for name, tensor in tensors.items()
        if name.startswith(MLP_PREFIX)
    }
    vision = vision_config(path, tensors)
    text = text_config(directory, vision.hidden_size)
    mlp = linear_head(head, path)
    if width_of(mlp) != text.hidden_size:
        raise CheckpointError(
            f"{path}: the head takes {width_of(mlp)} numbers, and the text tower has {text.hidden_size}"
        )
    network = ImageRewardNetwork(vision, text, mlp)
    names = {name: translated(name, TENSOR_NAMES) for name in network.state_dict()}
    if wrong := mismatch(tensors, {names[name]: tensor for name, tensor in network.state_dict().items()}):
        raise CheckpointError(f"{path}: the weights don't fit: {wrong}")
    network.load_state_dict({name: tensors[place] for name, place in names.items()})
    network.vision.to(dtype)
    network.text.to(dtype)
    return network


# --- the model ----------------------------------------------------------------------------------

MAX_TOKENS = 35  # the released code's; [CLS] and [SEP] count, too


def load_tokenizer(directory: Path, rows: int) -> Tokenizer:
    """
    Load the tokenizer, thread-safe and with truncation to the model's length.

    BLIP's own two words, [DEC] and [ENC], are not added: no score has them.

    Args:
        rows: number of embeddings.

    Raises:
        CheckpointError: the file is missing, broken, or does not fit the embeddings.
    """
    path = next((directory / name for name in VOCABULARY if (directory / name).is_file()), None)
    if path is None:
        raise CheckpointError(
            f"{directory}: neither {' nor '.join(VOCABULARY)}; copy that of {FAMILY.base} there"
        )
    try:
        tokenizer = read_tokenizer(path)
        [first, *_, last] = tokenizer.encode("a").tokens
    except Exception as exc:  # tokenizers raises many kinds for a broken file
        raise CheckpointError(f"{path}: cannot be loaded: {in_short(exc)}") from exc
    if (first, last) != ("[CLS]", "[SEP]"):
        raise CheckpointError(f"{path}: not BERT's: it puts texts between {first} and {last}")
    check_words(path, tokenizer.get_vocab_size(), rows)
    tokenizer.no_padding()
    tokenizer.encode_special_tokens = True  # "[SEP]" in a prompt is text
    tokenizer.enable_truncation(MAX_TOKENS)
    return tokenizer


def unknown_token(tokenizer: Tokenizer) -> Unknown:
    """Return BERT's unknown token."""
    special = [tokenizer.token_to_id(name) for name in ("[CLS]", "[SEP]")]
    return Unknown(tokenizer.token_to_id("[UNK]"), frozenset(filter(None, special)))


def read_tokenizer(path: Path) -> Tokenizer:
    """Read the tokenizer in either format."""
    if path.suffix == ".json":
        return Tokenizer.from_file(str(path))
    return Tokenizer.from_str(BertWordPieceTokenizer(str(path), lowercase=True).to_str())


class ImageReward:
    """
    A loaded ImageReward; the head is float32.

    Args as in `ModelArguments`, and the directory of the tokenizer if that is another one.  Raises
    `CheckpointError`.
    """

    def __init__(
        self,
        directory: Path,
        words: Path | None = None,
        *,
        dtype: str,
        device: str,
        id: str = "",
        revision: str = "",
    ) -> None:
        self._network = load_network(directory, DTYPES[dtype]).to(device).eval()
        self._tokenizer = load_tokenizer(words or directory, self._network.text.config.vocab_size)
        self._unknown = unknown_token(self._tokenizer)
        self._device, self._dtype = torch.device(device), DTYPES[dtype]
        vision = self._network.vision.config
        self._pixels = Pixels(vision.image_size, pad=False, to_even=True)
        self._patches = (vision.image_size // vision.patch_size) ** 2
        self.info = info_of(FAMILY, directory, FILES, dtype, device, id, revision, weights=())

    def prepare(self, call: RewardCall) -> Prepared:
        """Preprocess the image and tokenise the prompt; the cost counts patches and tokens."""
        encoded = self._tokenizer.encode(call.prompt)
        ids = tuple(encoded.ids)
        pixels = self._pixels.resized(call.image.rgb)
        cut, unknown = bool(encoded.overflowing), self._unknown.share(ids)
        found = ImageAndText(call.image.digest, pixels, ids, cut, unknown)
        return Prepared(self._patches + len(ids), found)

    @torch.inference_mode()
    def score(self, batch: Sequence[Prepared]) -> list[Reward]:
        """Run the vision tower once on the distinct pictures, and the text tower once on all texts."""
        inputs: list[ImageAndText] = [prepared.data for prepared in batch]
        pixels, places = distinct_images(inputs, self._device)
        ids, mask = padded([input.ids for input in inputs], self._device)
        normalised = self._pixels.normalised(pixels).to(self._dtype)
        rewards = self._network(normalised, places, ids, mask)
        return [
            Reward((value,), truncated=input.truncated, unknown=input.unknown)
            for value, input in zip(rewards.tolist(), inputs, strict=True)
        ]

    def example(self) -> RewardCall:
        return RewardCall(grey(224, 224), "a red circle left of a blue square")


def from_settings(settings: LocalSettings) -> ImageReward:
    """Load the model of a table.  Raises `CheckpointError`."""
    arguments, words = located(settings)
    return ImageReward(words=words, **arguments)
