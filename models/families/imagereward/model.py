"""
ImageReward (Xu et al. 2023, "ImageReward: Learning and Evaluating Human Preferences for Text-to-Image
Generation"): BLIP encodes the prompt with attention to the image, and a head returns the reward.

Constants, lengths and pixels are those of the released code (package image-reward 1.5).
"""

from collections.abc import Sequence
from pathlib import Path

import torch
from tokenizers import BertWordPieceTokenizer, Tokenizer

from models.checkpoints.info import info_of
from models.checkpoints.pretrained import Unknown, check_words
from models.checkpoints.weights import DTYPES
from models.core.calls import RewardCall
from models.core.contract import CheckpointError, ModelError, Prepared
from models.core.examples import grey
from models.core.messages import in_short
from models.core.outcomes import Reward
from models.core.settings import LocalSettings
from models.families.imagereward import FAMILY
from models.families.imagereward.network import FILES, VOCABULARY, load_network, located
from models.families.inputs import PictureAndText, distinct_pictures, padded
from models.images.pixels import Pixels

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
            f"{directory}: neither {' nor '.join(VOCABULARY)}; copy that of"
            " google-bert/bert-base-uncased there"
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
        found = PictureAndText(call.image.digest, pixels, ids, cut, unknown)
        return Prepared(self._patches + len(ids), found)

    @torch.inference_mode()
    def score(self, batch: Sequence[Prepared]) -> list[Reward | ModelError]:
        """Run the vision tower once on the distinct pictures, and the text tower once on all texts."""
        inputs: list[PictureAndText] = [prepared.data for prepared in batch]
        pixels, places = distinct_pictures(inputs, self._device)
        ids, mask = padded([input.ids for input in inputs], self._device)
        normalised = self._pixels.normalised(pixels).to(self._dtype)
        rewards = self._network(normalised, places, ids, mask)
        return [
            Reward((value,), truncated=input.truncated, unknown=input.unknown).checked()
            for value, input in zip(rewards.tolist(), inputs, strict=True)
        ]

    def example(self) -> RewardCall:
        return RewardCall(grey(224, 224), "a red circle left of a blue square")


def from_settings(settings: LocalSettings) -> ImageReward:
    """Load the model of a table.  Raises `CheckpointError`."""
    arguments, words = located(settings)
    return ImageReward(words=words, **arguments)
