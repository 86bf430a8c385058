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
from torch.nn.utils.rnn import pad_sequence
from transformers import Blip2ForConditionalGeneration, InstructBlipForConditionalGeneration

from models.checkpoints.files import (
    CONFIG,
    PIECES,
    PREPROCESSOR,
    PROCESSOR,
    TOKENIZER_FILES,
    check_model_type,
    read_json,
    safetensors_files,
)
from models.checkpoints.info import info_of
from models.checkpoints.locate import model_arguments
from models.checkpoints.pretrained import Unknown, check_words, load_fast_tokenizer, load_pretrained
from models.checkpoints.weights import DTYPES
from models.core.calls import LikelihoodCall, VqaCall
from models.core.contract import QUESTION, CheckpointError, ModelError, Prepared
from models.core.examples import grey
from models.core.outcomes import CallResult
from models.core.settings import LocalSettings
from models.families.clip_flant5.tokens import (
    EOS,
    PAD,
    AnswerEncoder,
    AnswerQuery,
    T5Tokenizer,
    outcomes_of,
)
from models.families.inputs import padded, upload
from models.families.instructblip import FAMILY, refusal
from models.families.processors import blip_pixels

INSTRUCTED_TYPE = "instructblip"  # its Q-Former reads the question
NETWORKS = {INSTRUCTED_TYPE: InstructBlipForConditionalGeneration, "blip-2": Blip2ForConditionalGeneration}


class InstructBlipNetwork:
    """
    The network of a directory.

    Attributes:
        instructed: the Q-Former reads the question, so that features depend on it.

    Raises:
        CheckpointError: it cannot be loaded, or its language model is no T5.
    """

    def __init__(self, directory: Path, dtype: torch.dtype, device: torch.device) -> None:
        path = directory / CONFIG
        given = read_json(path)
        kind = check_model_type(path, given, *NETWORKS)
        if reason := refusal(given):
            raise CheckpointError(f"{path}: {reason}")
        self.whole = load_pretrained(NETWORKS[kind], directory, dtype).to(device).eval()
        self.instructed, self._device = kind == INSTRUCTED_TYPE, device

    @property
    def config(self) -> Any:
        """The configuration of transformers."""
        return self.whole.config

    def see(self, pixels: torch.Tensor) -> torch.Tensor:
        """Compute features (N, patches, width) of pixels (N, 3, side, side)."""
        seen: torch.Tensor = self.whole.vision_model(pixel_values=pixels).last_hidden_state
        return seen

    def query(self, seen: torch.Tensor, texts: Sequence[Sequence[int]]) -> torch.Tensor:
        """Compute what the queries find (N, queries, width of the language model), for each of *texts*."""
        queries = self.whole.query_tokens.expand(len(seen), -1, -1)
        count, text = queries.shape[1], {}
        if self.instructed:
            ids, mask = padded(texts, self._device)
            text = {"input_ids": ids, "attention_mask": torch.cat([mask.new_ones(len(ids), count), mask], 1)}
        found = self.whole.qformer(
            query_embeds=queries,
            encoder_hidden_states=seen,
            encoder_attention_mask=torch.ones(seen.shape[:2], dtype=torch.long, device=self._device),
            **text,
        ).last_hidden_state[:, :count]
        projection = self.whole.language_projection
        projected: torch.Tensor = projection(found.to(projection.weight.dtype))
        return projected

    def encode(
        self, found: torch.Tensor, texts: Sequence[Sequence[int]]
    ) -> tuple[torch.Tensor, torch.Tensor]:
        """Encode what the queries found with the text behind it; return states and mask (N, length)."""
        language = self.whole.language_model
        ids, mask = padded(texts, self._device)
        embedded = torch.cat([found, language.get_input_embeddings()(ids).to(found.dtype)], 1)
        mask = torch.cat([mask.new_ones(found.shape[:2]), mask], 1)
        states: torch.Tensor = language.encoder(inputs_embeds=embedded, attention_mask=mask).last_hidden_state
        return states, mask

    def logits(
        self, states: torch.Tensor, mask: torch.Tensor, rows: Sequence[int], answers: Sequence[Sequence[int]]
    ) -> torch.Tensor:
        """
        Decode answers, each from the states of its row.

        Returns:
            Logits (tokens of all answers one after the other, vocabulary), float32.
        """
        language = self.whole.language_model
        inputs = [torch.tensor([PAD, *answer[:-1]]) for answer in answers]  # decoding begins with padding
        places = torch.tensor(rows, device=self._device)
        decoded = language.decoder(
            input_ids=pad_sequence(inputs, batch_first=True).to(self._device),
            encoder_hidden_states=states[places],
            encoder_attention_mask=mask[places],
            use_cache=False,
        ).last_hidden_state
        longest = decoded.shape[1]
        real = [row * longest + place for row, answer in enumerate(answers) for place in range(len(answer))]
        tokens = decoded.flatten(0, 1)[torch.tensor(real, device=self._device)]
        if language.config.scale_decoder_outputs:
            tokens = tokens * language.model_dim**-0.5
        logits: torch.Tensor = language.lm_head(tokens).float()
        return logits


def weights(directory: Path) -> list[Path]:
    """Return the weight files of a checkpoint of these kinds.  Raises `CheckpointError`."""
    return safetensors_files(directory, *NETWORKS)


MAX_TOKENS = 128  # the Q-Former and the language model cut a question there
QFORMER_TOKENIZER = "qformer_tokenizer"  # the folder of the Q-Former's tokenizer
ANSWERS = ("yes", "no")  # lower case, as in its training data


@dataclass(frozen=True, slots=True)
class InstructedQuestion:
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
        self.network = InstructBlipNetwork(directory, self._dtype, self._device)
        config = self.network.config
        self._words = T5Tokenizer(directory / PIECES, extra_ids=0)
        check_words(directory, self._words.size, config.text_config.vocab_size)
        self._instruction, self._unknown = None, Unknown(None)
        if self.network.instructed:
            self._instruction, self._unknown = instruction_tokenizer(
                directory / QFORMER_TOKENIZER, config.qformer_config
            )
        self._pixels = blip_pixels(directory, config.vision_config.image_size)
        self._answers = AnswerEncoder(self._words, ANSWERS)
        patches = (config.vision_config.image_size // config.vision_config.patch_size) ** 2
        self._seen = patches + config.num_query_tokens
        words = (f"{QFORMER_TOKENIZER}/{name}" for name in TOKENIZER_FILES)
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
        text = words if len(words) <= MAX_TOKENS else [*words[: MAX_TOKENS - 1], EOS]
        instruction = self._instruction.encode(call.question) if self._instruction else None
        truncated = text is not words or bool(instruction and instruction.overflowing)
        ids = tuple(instruction.ids) if instruction else ()
        unknown = max(self._answers.unknown(call), self._unknown.share(ids))
        query = self._answers.encode(call, truncated=truncated, unknown=unknown)
        pixels = call.image.once(self._pixels, self._pixels.resized)
        pair = InstructedQuestion(call.image.digest, pixels, tuple(text), ids, query)
        return Prepared(self._seen + len(text) + len(ids) + query.tokens, pair)

    @torch.inference_mode()
    def score(self, batch: Sequence[Prepared]) -> list[CallResult | ModelError]:
        """
        Run the vision tower once on distinct images, the encoders once on distinct pairs with a question.
        """
        pairs: list[InstructedQuestion] = [prepared.data for prepared in batch]
        images = {pair.digest: pair.pixels for pair in pairs}
        order = {digest: place for place, digest in enumerate(images)}
        pixels = self._pixels.normalised(upload([*images.values()], self._device))
        seen = self.network.see(pixels.to(self._dtype))
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
    tokenizer.enable_truncation(min(MAX_TOKENS, config.max_position_embeddings))
    return tokenizer, unknown


def from_settings(settings: LocalSettings) -> InstructBlip:
    """Load the model of a table.  Raises `CheckpointError`."""
    return InstructBlip(**model_arguments(settings))
