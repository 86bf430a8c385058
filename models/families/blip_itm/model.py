"""
Image-text matching (ITM): the probability that a text describes an image, by BLIP (Li et al. 2022, arXiv
2201.12086) or BLIP-2 (Li et al. 2023, arXiv 2301.12597); and their contrast (ITC), the cosine of embeddings.

Networks and pixels are those of transformers.  Texts are those of LAVIS: cut at its length, and where BLIP
matches them, with [ENC] as the first token.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
from tokenizers import Tokenizer
from torch.nn.functional import cosine_similarity
from transformers import Blip2ForImageTextRetrieval, BlipForImageTextRetrieval

from models.checkpoints.files import (
    CONFIG,
    PREPROCESSOR,
    PROCESSOR,
    TOKENIZER_FILES,
    model_type,
    safetensors_files,
)
from models.checkpoints.info import info_of
from models.checkpoints.locate import model_arguments
from models.checkpoints.pretrained import load_fast_tokenizer, load_pretrained
from models.checkpoints.weights import DTYPES
from models.core.calls import ContrastCall, RewardCall
from models.core.contract import Prepared
from models.core.examples import grey
from models.core.outcomes import Reward
from models.core.settings import LocalSettings
from models.families.blip_itm import FAMILY
from models.families.inputs import ImageAndText, distinct_images, padded
from models.families.processors import blip_pixels


@dataclass(frozen=True, slots=True)
class MatcherKind:
    """
    A kind of network.

    Attributes:
        network: class of transformers.
        first: the id of the token that LAVIS writes in place of [CLS], from tokenizer and configuration; None
            for none.
        logits: of no match and of a match (N, 2), from the network, features of images (N, patches, width),
            and token ids with their mask (N, T).
        cosines: of the embeddings (N), from the same.
    """

    network: Any
    first: Callable[[Tokenizer, Any], int | None]
    logits: Callable[[Any, torch.Tensor, torch.Tensor, torch.Tensor], torch.Tensor]
    cosines: Callable[[Any, torch.Tensor, torch.Tensor, torch.Tensor], torch.Tensor]


def blip(network: Any, seen: torch.Tensor, ids: torch.Tensor, mask: torch.Tensor) -> torch.Tensor:
    """Compute BLIP's logits from the first token of the text, which attends to the image."""
    read = network.text_encoder(
        input_ids=ids,
        attention_mask=mask,
        encoder_hidden_states=seen,
        encoder_attention_mask=mask.new_ones(seen.shape[:2]),
    )
    logits: torch.Tensor = network.itm_head(read.last_hidden_state[:, 0])
    return logits


def blip_cosines(network: Any, seen: torch.Tensor, ids: torch.Tensor, mask: torch.Tensor) -> torch.Tensor:
    """Compute BLIP's cosines of the first features of image and text."""
    read = network.text_encoder(input_ids=ids, attention_mask=mask).last_hidden_state
    return cosine_similarity(network.vision_proj(seen[:, 0]), network.text_proj(read[:, 0]))


def blip_2(network: Any, seen: torch.Tensor, ids: torch.Tensor, mask: torch.Tensor) -> torch.Tensor:
    """Compute BLIP-2's logits: the mean over its queries, which attend to text and image."""
    queries = network.query_tokens.expand(len(ids), -1, -1)
    count = queries.shape[1]
    read = network.qformer(
        query_embeds=network.embeddings(input_ids=ids, query_embeds=queries),
        query_length=count,
        attention_mask=torch.cat([mask.new_ones(len(ids), count), mask], 1),
        encoder_hidden_states=seen,
        encoder_attention_mask=mask.new_ones(seen.shape[:2]),
    )
    logits: torch.Tensor = network.itm_head(read.last_hidden_state[:, :count]).mean(1)
    return logits


def blip_2_cosines(network: Any, seen: torch.Tensor, ids: torch.Tensor, mask: torch.Tensor) -> torch.Tensor:
    """Compute BLIP-2's cosines: of the text and the query that is most like it."""
    queries = network.qformer(
        query_embeds=network.query_tokens.expand(len(ids), -1, -1),
        encoder_hidden_states=seen,
        encoder_attention_mask=mask.new_ones(seen.shape[:2]),
    ).last_hidden_state
    texts = network.embeddings(input_ids=ids)
    read = network.qformer(query_embeds=texts, query_length=0, attention_mask=mask).last_hidden_state
    text = network.text_projection(read[:, :1])
    return cosine_similarity(network.vision_projection(queries), text, -1).amax(1)


def enc(tokenizer: Tokenizer, config: Any) -> int | None:
    """
    Return the id of [ENC], with which a BLIP was trained to match; None if its vocabulary has none.

    BLIP adds two words to BERT's, [DEC] and then [ENC].  Published tokenizers of transformers have neither:
    their configurations have [DEC] as `bos_token_id`, and embeddings of both.
    """
    words, text = tokenizer.get_vocab_size(), config.text_config
    if text.bos_token_id == words == text.vocab_size - 2:
        return words + 1
    named: int | None = tokenizer.token_to_id("[ENC]")
    return named


KINDS = {
    "blip": MatcherKind(BlipForImageTextRetrieval, enc, blip, blip_cosines),
    "blip-2": MatcherKind(Blip2ForImageTextRetrieval, lambda *_: None, blip_2, blip_2_cosines),
}


def kind_of(directory: Path) -> MatcherKind:
    """Return the kind of a checkpoint.  Raises `CheckpointError` for another one."""
    return KINDS[model_type(directory, *KINDS)]


def weights(directory: Path) -> list[Path]:
    """Return the weight files of a checkpoint of these kinds.  Raises `CheckpointError`."""
    return safetensors_files(directory, *KINDS)


MAX_TOKENS = 35  # [CLS] and [SEP] count, too


class BlipItm:
    """
    A loaded BLIP or BLIP-2; only the vision tower is in *dtype*, the rest is float32.

    Args as in `ModelArguments`.  Raises `CheckpointError`.
    """

    def __init__(self, directory: Path, *, dtype: str, device: str, id: str = "", revision: str = "") -> None:
        self._kind = kind_of(directory)
        self.network = load_pretrained(self._kind.network, directory, torch.float32)
        self.network.vision_model.to(DTYPES[dtype])
        self.network.to(device).eval()
        self._device, self._dtype = torch.device(device), DTYPES[dtype]
        vision = self.network.config.vision_config
        self._patches = (vision.image_size // vision.patch_size) ** 2
        rows = self.network.get_input_embeddings().num_embeddings
        self._tokenizer, _, self._unknown = load_fast_tokenizer(directory, rows)
        self._tokenizer.enable_truncation(MAX_TOKENS)
        self._first = self._kind.first(self._tokenizer, self.network.config)
        self._pixels = blip_pixels(directory, vision.image_size)
        files = (CONFIG, PREPROCESSOR, PROCESSOR, *TOKENIZER_FILES)
        self.info = info_of(FAMILY, directory, files, dtype, device, id, revision)

    def prepare(self, call: RewardCall | ContrastCall) -> Prepared:
        """Preprocess the image and tokenise the prompt; the cost counts patches and tokens."""
        encoded = self._tokenizer.encode(call.prompt)
        pixels = call.image.once(self._pixels, self._pixels.resized)
        unknown = self._unknown.share(encoded.ids)
        ids = tuple(encoded.ids)
        found = ImageAndText(call.image.digest, pixels, ids, bool(encoded.overflowing), unknown)
        contrast = isinstance(call, ContrastCall)
        return Prepared(self._patches + len(ids) * (1 + contrast), (found, contrast))

    @torch.inference_mode()
    def score(self, batch: Sequence[Prepared]) -> list[Reward]:
        """
        Run the vision tower once on the distinct pictures, and the rest once on all texts.

        The reward of a match is log P(match) - log P(no match).
        """
        inputs: list[ImageAndText] = [prepared.data[0] for prepared in batch]
        pixels, places = distinct_images(inputs, self._device)
        normalised = self._pixels.normalised(pixels).to(self._dtype)
        seen = self.network.vision_model(pixel_values=normalised).last_hidden_state.float()[places]
        ids, mask = padded([input.ids for input in inputs], self._device)
        logits = self._kind.logits(self.network, seen, self._matched(ids), mask).double().tolist()
        contrasts = [row for row, prepared in enumerate(batch) if prepared.data[1]]
        cosines = dict[int, float]()
        if contrasts:
            rows = (each[contrasts] for each in (seen, ids, mask))
            found = self._kind.cosines(self.network, *rows).double().tolist()
            cosines = dict(zip(contrasts, found, strict=True))
        return [
            Reward(
                (cosines[row], none, match) if row in cosines else (match - none,),
                truncated=input.truncated,
                unknown=input.unknown,
            )
            for row, (input, (none, match)) in enumerate(zip(inputs, logits, strict=True))
        ]

    def _matched(self, ids: torch.Tensor) -> torch.Tensor:
        """Return the ids of texts to match, which may begin with another token."""
        if self._first is None:
            return ids
        return torch.cat([torch.full_like(ids[:, :1], self._first), ids[:, 1:]], 1)

    def example(self) -> RewardCall:
        return RewardCall(grey(384, 256), "a red circle left of a blue square")


def from_settings(settings: LocalSettings) -> BlipItm:
    """Load the model of a table.  Raises `CheckpointError`."""
    return BlipItm(**model_arguments(settings))
