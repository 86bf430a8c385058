"""
Qwen2.5-VL and Qwen3-VL: decoder VLMs, run by transformers.

    P(label | image, question) = product over the label's tokens of their probabilities as an answer

Questions and labels are those of a model behind vLLM (`models.families.vlm_answers`), and probabilities are
over the whole vocabulary.  Networks, pixels and chat templates are those of transformers.  In a batch, the
tower reads an image once, and the language model what questions about it begin with.
"""

from collections.abc import Mapping, Sequence
from itertools import groupby
from pathlib import Path
from typing import Any

import torch
from torch.nn.utils.rnn import pad_sequence
from transformers import (
    Qwen2_5_VLForConditionalGeneration,
    Qwen2VLImageProcessor,
    Qwen3VLForConditionalGeneration,
)

from models.checkpoints.files import CONFIG, check_model_type, read_json, safetensors_files
from models.checkpoints.info import info_of
from models.checkpoints.locate import model_arguments
from models.checkpoints.plan import plan_checkpoint
from models.checkpoints.pretrained import check_words, load_pretrained
from models.checkpoints.weights import DTYPES, num_parameters
from models.core.calls import AnswerCall, LabelCall, LikelihoodCall
from models.core.contract import QUESTION, CheckpointError, ModelError, Prepared
from models.core.examples import grey
from models.core.family import Plan
from models.core.outcomes import CallResult
from models.families.batches import FeatureCache, Size, alike
from models.families.qwen_vl import FAMILY, MODEL_TYPES, PUBLISHED_MODELS, QwenVlSettings, refusal
from models.families.qwen_vl.rows import LabelledChat, Row, rows
from models.families.vl_inputs import BASE_FILES, Patches, PatchPixels, VlTokenizer, check_length, expanded
from models.families.vlm_answers import Tokens, VlmCall, answers_of, visible
from models.images.image import Image

NETWORKS = dict(
    zip(MODEL_TYPES, (Qwen2_5_VLForConditionalGeneration, Qwen3VLForConditionalGeneration), strict=True)
)
WORDS = ("Yes", "No")
THOUGHT = "<think>"  # a template that opens one has no answer as the first token


def plan(settings: QwenVlSettings) -> Plan:
    """Return the plan of a table.  Same errors as `models.checkpoints.plan.plan`."""
    torch.device(settings.device)
    return plan_checkpoint(settings.checkpoint, settings.revision, count, PUBLISHED_MODELS)


def count(directory: Path) -> int:
    """Return the number of parameters; check the configuration."""
    check_kind(directory)
    return num_parameters(safetensors_files(directory))


def check_kind(directory: Path) -> str:
    """Return the `model_type` of a checkpoint.  Raises `CheckpointError` for one that cannot be loaded."""
    path = directory / CONFIG
    given = read_json(path)
    kind = check_model_type(path, given, *MODEL_TYPES)
    if reason := refusal(given):
        raise CheckpointError(f"{path}: {reason}")
    return kind


# --- texts --------------------------------------------------------------------------------------


class Chats:
    """
    Questions about images as token ids; thread-safe.

    Args:
        pad: id of a token of an image; the template has it once for each.

    Raises:
        CheckpointError: the tokenizer or its chat template cannot be used.
    """

    def __init__(self, directory: Path, pad: int) -> None:
        self._words, self._pad = VlTokenizer(directory), pad
        self._around = dict[tuple[str, ...], list[str]]()
        self.size = self._words.special.get_vocab_size()
        *_, after = self.around(("image", "text"))
        if THOUGHT in after.replace(f"{THOUGHT}\n\n</think>", ""):
            raise CheckpointError(
                f"{directory}: its chat template begins an answer with a thought, which this service does"
                " not write; take the Instruct model"
            )
        if len({self.label(word, True) for word in WORDS if len(self.label(word, True)) == 1}) < len(WORDS):
            raise CheckpointError(f"{directory}: its tokenizer has no tokens {' and '.join(WORDS)}")

    def around(self, kinds: tuple[str, ...]) -> list[str]:
        """Return the rendered chat around the texts of a message with parts of these *kinds*."""
        if kinds not in self._around:
            self._around[kinds] = self._words.around(kinds)
        return self._around[kinds]

    def encode(self, shown: Sequence[str | Image], counts: Sequence[int]) -> tuple[Tokens, Tokens]:
        """
        Return the ids of a chat up to its last image, and those after it.

        Args:
            shown: texts and images of the message, in order.
            counts: of tokens of each image.
        """
        texts, kinds = list[str](), list[str]()
        for is_text, group in groupby(shown, lambda each: isinstance(each, str)):
            parts = [*group]
            kinds += ["text"] if is_text else ["image"] * len(parts)
            texts += ["".join(map(str, parts))] if is_text else []
        ids = expanded(self._words.encode(self.around(tuple(kinds)), texts), counts, self._pad)
        last = len(ids) - ids[::-1].index(self._pad)
        return tuple(ids[:last]), tuple(ids[last:])

    def label(self, label: str, whole: bool) -> Tokens:
        """
        Return the ids of a label.

        Args:
            whole: all of them; otherwise the first one that is more than a space.

        Raises:
            ModelError: they are only spaces.
        """
        found = self._words.plain.encode(label, add_special_tokens=False)
        if whole:
            return tuple(found.ids)
        first = visible(found.ids, found.tokens)
        if first is None:
            raise ModelError("no token of the answer is more than a space")
        return (first,)


# --- the network --------------------------------------------------------------------------------


class QwenNetwork:
    """
    A network of transformers on its device.

    Attributes:
        module: with the language model's head.
        pad: id of a token of an image.
        merged: patches that are one token, in height and in width.
        context: number of tokens that it takes.
    """

    def __init__(self, module: Any, device: torch.device) -> None:
        self.module, self._device, self._dtype = module, device, module.dtype
        config = self.module.config
        self.pad: int = config.image_token_id
        self.merged: int = config.vision_config.spatial_merge_size
        self.context: int = config.text_config.max_position_embeddings
        self._width: int = config.text_config.hidden_size

    @property
    def words(self) -> int:
        """The number of tokens with an embedding."""
        return int(self.module.get_input_embeddings().num_embeddings)

    def see(self, images: Sequence[Patches]) -> list[torch.Tensor]:
        """Return the features of each image: (tokens, widths), those of deeper layers behind the first."""
        pixels = torch.cat([each.pixels for each in images]).to(self._device, self._dtype)
        grids = torch.tensor([each.grid for each in images], device=self._device)
        found = self.module.model.get_image_features(pixels, grids)
        deeper = getattr(found, "deepstack_features", ())
        return [torch.cat(parts, -1) for parts in zip(found.pooler_output, *deeper, strict=True)]

    def states(self, group: Sequence[Row], features: Mapping[str, torch.Tensor]) -> torch.Tensor:
        """Return the last states of all tokens: (rows, longest, width)."""
        ids, ends, *places = (
            pad_sequence([torch.as_tensor(each) for each in parts], batch_first=True)
            for parts in zip(*((row.ids, row.ends, *row.positions) for row in group), strict=True)
        )
        ids, ends, positions = (each.to(self._device) for each in (ids, ends, torch.stack(places)))
        seen = ids == self.pad
        found = torch.cat([features[image] for row in group for image in row.images])
        first, *deeper = found.chunk(found.shape[-1] // self._width, -1)
        embedded = self.module.get_input_embeddings()(ids).masked_scatter(seen[..., None], first)
        more: dict[str, Any] = {}
        if deeper:
            more = {"visual_pos_masks": seen, "deepstack_visual_embeds": deeper}
        branches = any(row.branches for row in group)
        states: torch.Tensor = self.module.model.language_model(
            inputs_embeds=embedded,
            attention_mask=visible_tokens(ends) if branches else None,  # None: all before
            position_ids=positions,
            use_cache=False,
            **more,
        ).last_hidden_state
        return states

    def log_probs(self, states: torch.Tensor, wanted: Sequence[tuple[int, int, int]]) -> list[float]:
        """
        Return the log-probabilities of tokens.

        Args:
            states: of the tokens of some rows.
            wanted: the row, the place of the token before, and the token.
        """
        befores = {each: number for number, each in enumerate(dict.fromkeys(each[:2] for each in wanted))}
        in_row, place = torch.tensor([*befores], device=self._device).unbind(1)
        logits = self.module.lm_head(states[in_row, place]).float()
        pairs = torch.tensor([(befores[each[:2]], each[2]) for each in wanted], device=self._device)
        number, token = pairs.unbind(1)
        found: list[float] = (logits[number, token] - logits.logsumexp(-1)[number]).tolist()
        return found


def visible_tokens(ends: torch.Tensor) -> torch.Tensor:
    """
    Return which tokens each one sees: (rows, 1, tokens, tokens), booleans.

    Args:
        ends: where the subtree of each token ends, exclusive; 0 for padding, which sees only itself.
    """
    places = torch.arange(ends.shape[1], device=ends.device)
    before, self_ = places[:, None] > places, places[:, None] == places
    return (before & (places[:, None] < ends[:, None]) | self_)[:, None]


# --- the model ----------------------------------------------------------------------------------


class QwenVl:
    """
    A loaded Qwen2.5-VL or Qwen3-VL.  Args as in `ModelArguments`; raises `CheckpointError`.

    Args:
        question: template of the question whether an image shows a text.
        max_pixels: most pixels of an image; None for the checkpoint's own limit.
        features_mb: memory for cached image features, in MiB on the device.
    """

    def __init__(
        self,
        directory: Path,
        *,
        dtype: str,
        device: str,
        id: str = "",
        revision: str = "",
        question: str = QUESTION,
        max_pixels: int | None = None,
        features_mb: int = 0,
    ) -> None:
        module = load_pretrained(NETWORKS[check_kind(directory)], directory, DTYPES[dtype], exact=True)
        self.network = QwenNetwork(module.to(device).eval(), torch.device(device))
        self._chats = Chats(directory, self.network.pad)
        check_words(directory, self._chats.size, self.network.words)
        self._pixels = PatchPixels(directory, Qwen2VLImageProcessor, pixels=None, most=max_pixels)
        self._features = FeatureCache(features_mb * 2**20)
        facts: dict[str, Any] = {"question": question, "choice_question": "{}"}
        self.info = info_of(FAMILY, directory, BASE_FILES, dtype, device, id, revision, **facts)

    def prepare(self, call: VlmCall | AnswerCall) -> Prepared:
        """
        Cut the images into patches and tokenise the texts; the cost counts patches and tokens, and questions
        about the same images share those up to the last image.

        Raises:
            ModelError: the answer is to be written, an answer is empty, a label begins another one, or the
                chat is longer than the model's context.
            ImageError: an image cannot be decoded.
        """
        if isinstance(call, AnswerCall):
            raise ModelError("this model writes no answers; a VLM behind a server does")
        answers = answers_of(call)
        labels = [self._chats.label(label, answers.whole) for label in answers.labels]
        answers.check(labels)
        images = [(image.digest, self._pixels.of(image)) for image in shown_images(call)]
        counts = [len(patches.pixels) // self.network.merged**2 for _, patches in images]
        trunk, rest = self._chats.encode([*before(call), call.image, answers.question], counts)
        longest = len(trunk) + len(rest) + max(map(len, labels)) - 1
        check_length(longest, self.network.context)
        chat = LabelledChat(images, trunk, rest, labels, answers)
        return Prepared(chat.cost, chat, chat.shared)

    @torch.inference_mode()
    def score(self, batch: Sequence[Prepared]) -> list[CallResult]:
        """Run the tower once on distinct images, the language model once on what questions share."""
        chats: list[LabelledChat] = [prepared.data for prepared in batch]
        features = self._features.of(dict(pair for chat in chats for pair in chat.images), self.network.see)
        every = rows(chats, self.network.pad, self.network.merged)
        outcomes = dict[int, CallResult]()
        for numbers in alike([Size(len(row.ids)) for row in every]):
            outcomes |= self._answered([every[number] for number in numbers], features, chats)
        return [outcomes[number] for number in range(len(chats))]

    def _answered(
        self, group: Sequence[Row], features: Mapping[str, torch.Tensor], chats: Sequence[LabelledChat]
    ) -> dict[int, CallResult]:
        """Return the results of the chats of *group*, computed in one pass, by their numbers."""
        labels = [
            (number, [(place, *each) for each in label])
            for place, row in enumerate(group)
            for number, wanted in row.wanted.items()
            for label in wanted
        ]
        states = self.network.states(group, features)
        numbers = iter(self.network.log_probs(states, [each for _, label in labels for each in label]))
        found = dict[int, list[list[float]]]()
        for number, label in labels:
            found.setdefault(number, []).append([next(numbers) for _ in label])
        return {
            number: chats[number].answers.outcome(log_probs, chats[number].labels)
            for number, log_probs in found.items()
        }

    def example(self) -> LikelihoodCall:
        return LikelihoodCall(grey(448, 448), QUESTION.replace("{}", "a red circle"))


def before(call: VlmCall) -> Sequence[str | Image]:
    """Return the texts and images of a call before its image."""
    return call.before if isinstance(call, LabelCall) else ()


def shown_images(call: VlmCall) -> list[Image]:
    """Return the images of a call, in the order of the chat."""
    return [each for each in (*before(call), call.image) if isinstance(each, Image)]


def from_settings(settings: QwenVlSettings) -> QwenVl:
    """Load the model of a table.  Raises `CheckpointError`."""
    return QwenVl(
        **model_arguments(settings),
        question=settings.question,
        max_pixels=settings.max_pixels,
        features_mb=settings.features_mb,
    )
