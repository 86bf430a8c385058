"""
InstructBLIP (Dai et al. 2023, arXiv 2305.06500): a VQA model of VQAScore's comparison (Lin et al. 2024).

    pixels -> vision tower -> Q-Former -> T5 encoder, with the question -> T5 decoder

InstructBLIP's Q-Former reads the question too; that of BLIP-2 (Li et al. 2023) does not.  Networks and pixels
are those of transformers.  Texts are cut at the length of LAVIS, and its question is the default.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch

from models.checkpoints.files import CONFIG, PIECES, PREPROCESSOR, PROCESSOR, TOKENIZER_FILES
from models.checkpoints.info import info_of
from models.checkpoints.locate import model_arguments
from models.checkpoints.pretrained import Unknown, check_words, load_fast_tokenizer
from models.checkpoints.weights import DTYPES
from models.core.calls import LikelihoodCall
from models.core.contract import QUESTION, ModelError, Prepared
from models.core.known import grey
from models.core.outcomes import CallResult
from models.core.settings import LocalSettings
from models.families.blip_pixels import BlipPixels
from models.families.clip_flant5.answers import AnswerEncoder, AnswerQuery, VqaCall, outcomes_of
from models.families.clip_flant5.tokenizer import EOS, Tokenizer
from models.families.instructblip import FAMILY
from models.families.instructblip.network import Network
from models.families.upload import upload

LENGTH = 128  # most tokens of a question, in the Q-Former and in the language model
INSTRUCTION = "qformer_tokenizer"  # the folder of the Q-Former's tokenizer
ANSWERS = ("yes", "no")  # lower case, as in its training data


@dataclass(frozen=True, slots=True)
class Pair:
    """
    One image and one question about it, with the answers.

    Attributes:
        text, instruction: the question as tokens of the language model, and of the Q-Former.
    """

    digest: str
    pixels: torch.Tensor
    text: tuple[int, ...]
    instruction: tuple[int, ...]
    query: AnswerQuery


class InstructBlip:
    """A loaded InstructBLIP or BLIP-2.  Args as in `ModelArguments`; raises `CheckpointError`."""

    def __init__(self, directory: Path, *, dtype: str, device: str, id: str = "", revision: str = "") -> None:
        self._device, self._dtype = torch.device(device), DTYPES[dtype]
        self.network = Network(directory, self._dtype, self._device)
        config = self.network.config
        self._words = Tokenizer(directory / PIECES, extra_ids=0)
        check_words(directory, self._words.size, config.text_config.vocab_size)
        self._instruction, self._unknown = None, Unknown(None)
        if self.network.instructed:
            self._instruction, self._unknown = instruction_tokenizer(
                directory / INSTRUCTION, config.qformer_config
            )
        self._pixels = BlipPixels(directory, config.vision_config.image_size)
        self._answers = AnswerEncoder(self._words, ANSWERS)
        patches = (config.vision_config.image_size // config.vision_config.patch_size) ** 2
        self._seen = patches + config.num_query_tokens
        words = (f"{INSTRUCTION}/{name}" for name in TOKENIZER_FILES)
        files = (CONFIG, PREPROCESSOR, PROCESSOR, PIECES, *words)
        templates: dict[str, Any] = {
            "question": f"Question: {QUESTION}",
            "choice_question": "Question: {} Short answer:",
        }
        self.info = info_of(FAMILY, directory, files, dtype, device, id, revision, **templates)

    def prepare(self, call: VqaCall) -> Prepared:
        """
        Preprocess the image and tokenise the texts; the cost counts patches, queries and tokens.

        Raises `ModelError` as `AnswerEncoder`.
        """
        words = self._words.encode(call.question)
        text = words if len(words) <= LENGTH else [*words[: LENGTH - 1], EOS]
        instruction = self._instruction.encode(call.question) if self._instruction else None
        truncated = text is not words or bool(instruction and instruction.overflowing)
        ids = tuple(instruction.ids) if instruction else ()
        unknown = max(self._answers.unknown(call), self._unknown.share(ids))
        query = self._answers.encode(call, truncated=truncated, unknown=unknown)
        pixels = call.image.once(self._pixels, self._pixels)
        pair = Pair(call.image.digest, pixels, tuple(text), ids, query)
        return Prepared(self._seen + len(text) + len(ids) + query.tokens, pair)

    @torch.inference_mode()
    def score(self, batch: Sequence[Prepared]) -> list[CallResult | ModelError]:
        """
        Run the vision tower once on distinct images, the encoders once on distinct pairs with a question.
        """
        pairs: list[Pair] = [prepared.data for prepared in batch]
        images = {pair.digest: pair.pixels for pair in pairs}
        order = {digest: place for place, digest in enumerate(images)}
        seen = self.network.see(upload([*images.values()], self._device).to(self._dtype))
        asked = {(pair.digest, pair.text, pair.instruction): place for place, pair in enumerate(pairs)}
        rows = {key: row for row, key in enumerate(asked)}
        places = torch.tensor([order[digest] for digest, _, _ in asked], device=self._device)
        found = self.network.query(seen[places], [instruction for _, _, instruction in asked])
        states, mask = self.network.encode(found, [text for _, text, _ in asked])
        row_of = [rows[pair.digest, pair.text, pair.instruction] for pair in pairs]
        answers = [
            (row, answer) for row, pair in zip(row_of, pairs, strict=True) for answer in pair.query.answers
        ]
        logits = self.network.logits(states, mask, *zip(*answers, strict=True))
        return [*outcomes_of(logits, [pair.query for pair in pairs])]

    def example(self) -> LikelihoodCall:
        return LikelihoodCall(grey(384, 256), self.info.question.replace("{}", "a red circle"), "yes")


def instruction_tokenizer(directory: Path, config: Any) -> tuple[Any, Unknown]:
    """Load the Q-Former's tokenizer, which cuts questions.  Raises `CheckpointError`."""
    tokenizer, _, unknown = load_fast_tokenizer(directory, config.vocab_size)
    tokenizer.enable_truncation(min(LENGTH, config.max_position_embeddings))
    return tokenizer, unknown


def load(settings: LocalSettings) -> InstructBlip:
    """Load the model of a table.  Raises `CheckpointError`."""
    return InstructBlip(**model_arguments(settings))
