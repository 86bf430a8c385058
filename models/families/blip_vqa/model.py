"""
BLIP for visual question answering (Li et al. 2022, arXiv 2201.12086): the VQA model of T2I-CompBench.

    pixels -> vision tower -> text encoder, with the question -> text decoder

Networks and pixels are those of transformers.  Questions are those of BLIP's released code: in lower case,
without some punctuation, cut at its length, and with [ENC] as the first token; answers begin after [DEC].
"""

import re
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import torch
from transformers import BlipForQuestionAnswering

from models.checkpoints.files import CONFIG, PREPROCESSOR, PROCESSOR, TOKENIZER_FILES, safetensors_files
from models.checkpoints.info import info_of
from models.checkpoints.locate import model_arguments
from models.checkpoints.pretrained import load_fast_tokenizer, load_pretrained
from models.checkpoints.weights import DTYPES
from models.core.calls import LikelihoodCall, VqaCall
from models.core.contract import CheckpointError, ModelError, Prepared
from models.core.examples import grey
from models.core.outcomes import CallResult
from models.core.settings import LocalSettings
from models.families.blip_itm.model import enc
from models.families.blip_vqa import FAMILY
from models.families.clip_flant5.tokens import AnswerEncoder, AnswerQuery, outcomes_of
from models.families.inputs import ImageAndText, distinct_images, padded
from models.families.processors import blip_pixels

MODEL_TYPE = "blip"
MAX_TOKENS = 35  # [ENC] and [SEP] count, too
DROPPED_CHARACTERS = re.compile(r"[.!\"()*#:;~]")  # a question loses them
ANSWERS = ("yes", "no")  # lower case, as in its training data


def cleaned(question: str) -> str:
    """Return a question as BLIP's released code reads it."""
    return DROPPED_CHARACTERS.sub("", question.lower()).rstrip(" ")


class Words:
    """The words of BERT in questions and answers, as an `AnswerTokenizer`.  Raises `CheckpointError`."""

    space: int | None = None

    def __init__(self, directory: Path, config: Any) -> None:
        self._tokenizer, _, self.unknown = load_fast_tokenizer(directory, config.text_config.vocab_size)
        ends, first = self._tokenizer.encode("").ids, enc(self._tokenizer, config)
        if len(ends) != 2:
            raise CheckpointError(f"{directory}: its tokenizer does not put [CLS] and [SEP] around a text")
        self._start, self._end = ends[0] if first is None else first, ends[1]
        yes, no = (self.encode(word)[0] for word in ANSWERS)
        if yes == no or self.unknown.id in (yes, no):
            raise CheckpointError(f"{directory}: its tokenizer has no words {' and '.join(ANSWERS)}")

    def encode(self, text: str) -> list[int]:
        """Return the ids of an answer, which [SEP] ends."""
        return list(self._tokenizer.encode(text).ids[1:])

    def question(self, text: str) -> tuple[tuple[int, ...], bool]:
        """Return the ids of a question between [ENC] and [SEP], and whether it was cut."""
        *words, _ = self.encode(text)
        cut = len(words) > MAX_TOKENS - 2
        return (self._start, *words[: MAX_TOKENS - 2], self._end), cut


def weights(directory: Path) -> list[Path]:
    """Return the weight files of a checkpoint.  Raises `CheckpointError`."""
    return safetensors_files(directory, MODEL_TYPE)


class BlipVqa:
    """
    A loaded BLIP that answers questions; only the vision tower is in *dtype*, the rest is float32.

    Args as in `ModelArguments`.  Raises `CheckpointError`.
    """

    def __init__(self, directory: Path, *, dtype: str, device: str, id: str = "", revision: str = "") -> None:
        self._device, self._dtype = torch.device(device), DTYPES[dtype]
        self.network = load_pretrained(BlipForQuestionAnswering, directory, torch.float32, MODEL_TYPE)
        self.network.vision_model.to(self._dtype)
        self.network.to(self._device).eval()
        vision, text = self.network.config.vision_config, self.network.config.text_config
        self._patches = (vision.image_size // vision.patch_size) ** 2
        self._first, self._positions = text.bos_token_id, text.max_position_embeddings
        if not (isinstance(self._first, int) and 0 <= self._first < text.vocab_size):
            raise CheckpointError(f"{directory / CONFIG}: bos_token_id is {self._first!r}, and no word")
        self._words = Words(directory, self.network.config)
        self._answers = AnswerEncoder(self._words, ANSWERS)
        self._pixels = blip_pixels(directory, vision.image_size)
        files = (CONFIG, PREPROCESSOR, PROCESSOR, *TOKENIZER_FILES)
        self.info = info_of(FAMILY, directory, files, dtype, device, id, revision, choice_question="{}")

    def prepare(self, call: VqaCall) -> Prepared:
        """
        Preprocess the image and tokenise the texts; the cost counts patches and tokens.

        Raises:
            ModelError: as `AnswerEncoder`, or an answer is longer than the decoder's positions.
        """
        call = replace(call, question=cleaned(call.question))
        ids, truncated = self._words.question(call.question)
        unknown = self._answers.unknown(call)
        query = self._answers.encode(call, truncated=truncated, unknown=unknown)
        if (longest := max(map(len, query.answers))) > self._positions:
            raise ModelError(f"an answer has {longest} tokens, and the model takes {self._positions}")
        pixels = call.image.once(self._pixels, self._pixels.resized)
        pair = ImageAndText(call.image.digest, pixels, ids, truncated, unknown)
        return Prepared(self._patches + len(ids) + query.tokens, (pair, query))

    @torch.inference_mode()
    def score(self, batch: Sequence[Prepared]) -> list[CallResult | ModelError]:
        """Run the vision tower once on distinct images, the encoder once on distinct pairs."""
        pairs: list[ImageAndText] = [prepared.data[0] for prepared in batch]
        queries: list[AnswerQuery] = [prepared.data[1] for prepared in batch]
        pixels, places = distinct_images(pairs, self._device)
        normalised = self._pixels.normalised(pixels).to(self._dtype)
        seen = self.network.vision_model(pixel_values=normalised).last_hidden_state.float()
        distinct = {(pair.key, pair.ids): place for place, pair in enumerate(pairs)}
        rows = {key: row for row, key in enumerate(distinct)}
        questions = [ids for _, ids in distinct]
        states = self._encode(seen[places[[*distinct.values()]]], questions)
        answers = [
            (rows[pair.key, pair.ids], answer)
            for pair, query in zip(pairs, queries, strict=True)
            for answer in query.answers
        ]
        return [*outcomes_of(self._logits(states, [*map(len, questions)], answers), queries)]

    def _encode(self, seen: torch.Tensor, questions: Sequence[Sequence[int]]) -> torch.Tensor:
        """Encode questions, each with its image; return states (N, longest, width)."""
        ids, mask = padded(questions, self._device)
        states: torch.Tensor = self.network.text_encoder(
            input_ids=ids,
            attention_mask=mask,
            encoder_hidden_states=seen,
            encoder_attention_mask=mask.new_ones(seen.shape[:2]),
        ).last_hidden_state
        return states

    def _logits(
        self, states: torch.Tensor, lengths: Sequence[int], answers: Sequence[tuple[int, Sequence[int]]]
    ) -> torch.Tensor:
        """
        Decode answers, each from the states of its row, together those about questions of one length.

        The cross-attention of transformers' BLIP ignores masks, so padding would change the answers.

        Returns:
            Logits (tokens of all answers one after the other, vocabulary), float32.
        """
        decoder, decoded = self.network.text_decoder, dict[int, torch.Tensor]()
        for length in sorted({lengths[row] for row, _ in answers}):
            places = [place for place, (row, _) in enumerate(answers) if lengths[row] == length]
            ids, _ = padded([(self._first, *answers[place][1][:-1]) for place in places], self._device)
            rows = torch.tensor([answers[place][0] for place in places], device=self._device)
            found = decoder.bert(
                input_ids=ids,
                encoder_hidden_states=states[rows, :length],
                is_decoder=True,
                use_cache=False,
            ).last_hidden_state
            decoded |= zip(places, found, strict=True)
        tokens = [decoded[place][: len(answer)] for place, (_, answer) in enumerate(answers)]
        logits: torch.Tensor = decoder.cls(torch.cat(tokens))
        return logits

    def example(self) -> LikelihoodCall:
        return LikelihoodCall(grey(384, 256), "a red circle?", "yes")


def from_settings(settings: LocalSettings) -> BlipVqa:
    """Load the model of a table.  Raises `CheckpointError`."""
    return BlipVqa(**model_arguments(settings))
