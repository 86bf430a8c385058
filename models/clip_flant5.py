"""
CLIP-FlanT5: the VQA model of VQAScore (Lin et al. 2024, "Evaluating Text-to-Visual Generation with
Image-to-Text Generation", section 3 and appendix D).

    pixels -> CLIP vision tower, layer -2, no CLS -> MLP projector -> T5 encoder -> T5 decoder

Reference implementation: t2v_metrics 3.0, `CLIPT5Model.forward`.  Its constants and its order of
steps are kept to the letter, since published scores depend on them; each surprising one is named
where it stands.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import chain, islice
from math import isfinite
from operator import itemgetter
from pathlib import Path
from typing import Any

import PIL.Image
import torch
from torch import nn
from transformers import CLIPVisionConfig, CLIPVisionModel, T5Config, T5ForConditionalGeneration
from transformers.modeling_outputs import BaseModelOutput

from models.base import (
    QUESTION,
    CheckpointError,
    Image,
    Likelihood,
    LikelihoodCall,
    ModelError,
    ModelInfo,
    Prepared,
)
from models.checkpoint import DTYPES, in_short, read_vocabulary, read_weights, revision_of
from models.features import FeatureCache
from models.flant5_layout import EMBEDDING, FILES, Layout, read_layout, renamed
from models.flant5_tokenizer import CONTEXT_LENGTH, EOS, IGNORE, PAD, Text
from models.forward import Forward
from models.misfits import misfit

# Names of the network that are `shared.weight` once more, and the tensors with a row for each piece.
ALIASES = ("t5.encoder.embed_tokens.weight", "t5.decoder.embed_tokens.weight")
CUT = (EMBEDDING, "lm_head.weight")


class Network(nn.Module):
    """
    The three parts, of transformers' modules, with the splice between them.

    What training changes, and what `Forward`, which the service runs, is held against.
    """

    def __init__(self, config: dict[str, Any], vision: dict[str, Any]) -> None:
        super().__init__()
        width = config["d_model"]
        # tie_word_embeddings is false for every FlanT5: lm_head has weights of its own and the
        # decoder's output is not scaled by d_model ** -0.5.
        t5 = {**config, "model_type": "t5", "tie_word_embeddings": False}
        self.t5 = T5ForConditionalGeneration(T5Config(**t5))
        self.vision_tower = CLIPVisionModel(CLIPVisionConfig(**vision))
        self.mm_projector = nn.Sequential(
            nn.Linear(vision["hidden_size"], width), nn.GELU(), nn.Linear(width, width)
        )
        self.layer = config.get("mm_vision_select_layer", -2)

    def features(self, pixels: torch.Tensor) -> torch.Tensor:
        """Pixels (n, 3, size, size) to projected patch features (n, patches, d_model)."""
        seen = self.vision_tower(pixels, output_hidden_states=True)
        projected: torch.Tensor = self.mm_projector(seen.hidden_states[self.layer][:, 1:])
        return projected

    def splice(self, features: torch.Tensor, texts: Sequence[Text]) -> tuple[torch.Tensor, torch.Tensor]:
        """
        Put each row of *features* between the two halves of its text.

        Args:
            features: (n, patches, d_model).
            texts: n pairs of token ids, before and after the image.

        Returns:
            Embeddings (n, longest, d_model), padded on the right, and their mask (n, longest).
        """
        patches = features.shape[1]
        longest = max(len(before) + patches + len(after) for before, after in texts)
        ids = torch.full((len(texts), longest), PAD)
        mask = torch.zeros(len(texts), longest, dtype=torch.long)
        slot = torch.zeros(len(texts), longest, dtype=torch.bool)
        for row, (before, after) in enumerate(texts):
            start, end = len(before), len(before) + patches
            ids[row, :start] = torch.tensor(before)
            ids[row, end : end + len(after)] = torch.tensor(after)
            mask[row, : end + len(after)] = 1
            slot[row, start:end] = True
        device = features.device
        embedded = self.t5.shared(ids.to(device))
        spliced = embedded.masked_scatter(slot.to(device)[..., None], features.to(embedded.dtype))
        return spliced, mask.to(device)

    def encode(self, embedded: torch.Tensor, mask: torch.Tensor) -> torch.Tensor:
        """Encoder states (n, longest, d_model)."""
        states: torch.Tensor = self.t5.encoder(inputs_embeds=embedded, attention_mask=mask).last_hidden_state
        return states

    def decode(self, states: torch.Tensor, mask: torch.Tensor, labels: torch.Tensor) -> torch.Tensor:
        """Logits (n, answer, vocabulary) of teacher-forced *labels* (n, answer; IGNORE pads)."""
        logits: torch.Tensor = self.t5(
            encoder_outputs=BaseModelOutput(last_hidden_state=states),
            attention_mask=mask,
            decoder_input_ids=shift_right(labels),
            decoder_attention_mask=(labels != IGNORE).long(),
            use_cache=False,
        ).logits
        return logits

    def log_probs(self, pixels: torch.Tensor, text: Text, answer: Sequence[int]) -> torch.Tensor:
        """
        Score one pair as the reference does: by itself, the image seen for it alone.

        Returns:
            Log-probabilities (tokens of *answer*, vocabulary), float32.
        """
        labels = torch.tensor([answer], device=pixels.device)
        embedded, mask = self.splice(self.features(pixels[None]), [text])
        return self.decode(self.encode(embedded, mask), mask, labels)[0].float().log_softmax(-1)


def shift_right(labels: torch.Tensor) -> torch.Tensor:
    """Decoder input: the start token (pad), then every label but the last."""
    shifted = labels.roll(1, dims=1)
    shifted[:, 0] = PAD
    return shifted.masked_fill(shifted == IGNORE, PAD)


@dataclass(frozen=True, slots=True)
class Pair:
    """One (image, question, answer) ready for the device."""

    digest: str
    pixels: torch.Tensor
    text: tuple[tuple[int, ...], tuple[int, ...]]
    labels: tuple[int, ...]
    truncated: bool


class ClipFlanT5:
    """
    A loaded CLIP-FlanT5.

    Args:
        directory: a checkpoint in the published layout; `vision_tower/` beside the weights may hold
            another tower's `config.json` and `preprocessor_config.json`.
        dtype: "float32", or "bfloat16" for weights and matrix products.
        compile: run the network's blocks through `torch.compile`.
        features_mb: memory for the features of images seen before, in MiB on the device.

    Raises:
        CheckpointError: a file is missing or unreadable, or the weights don't fit the configuration.
    """

    def __init__(
        self,
        directory: Path,
        *,
        dtype: str,
        device: str,
        id: str = "",
        revision: str = "",
        compile: bool = False,
        features_mb: int = 0,
    ) -> None:
        layout = read_layout(directory)
        self.tokenizer, self.pixels = layout.tokenizer, layout.pixels
        network = load_network(directory, layout)
        self.forward = Forward(network, device=torch.device(device), dtype=DTYPES[dtype], compile=compile)
        self._seen = FeatureCache(features_mb * 2**20)
        self._patches = (layout.vision["image_size"] // layout.vision["patch_size"]) ** 2
        self._yes, self._no = (self.tokenizer.encode(word)[0] for word in ("Yes", "No"))
        self.info = ModelInfo(
            role="vqa",
            family="clip_flant5",
            id=id or directory.name,
            revision=revision or revision_of(directory, FILES),
            dtype=dtype,
            device=device,
            vocabulary=read_vocabulary(directory),
        )

    def prepare(self, call: LikelihoodCall) -> Prepared:
        """Resize the image and tokenise the texts; the cost is the encoder's and the answer's length."""
        before, after = self.tokenizer.around_image(call.question)
        if not call.answer.strip():
            raise ModelError("the answer is empty")
        pair = Pair(
            digest=call.image.digest,
            pixels=call.image.once(self.pixels, self.pixels),
            text=(tuple(before), tuple(after)),
            labels=tuple(self.tokenizer.encode(call.answer)[:CONTEXT_LENGTH]),
            truncated=after[-1] != EOS,
        )
        return Prepared(len(before) + self._patches + len(after) + len(pair.labels), pair)

    @torch.inference_mode()
    def score(self, batch: Sequence[Prepared]) -> list[Likelihood | ModelError]:
        """One vision pass per distinct image, one encoder pass per distinct (image, question)."""
        pairs: list[Pair] = [prepared.data for prepared in batch]
        images = {pair.digest: pair.pixels for pair in pairs}
        asked: dict[tuple[str, Text], list[int]] = {}
        for number, pair in enumerate(pairs):
            asked.setdefault((pair.digest, pair.text), []).append(number)

        seen = self._seen.of(images, self.forward.features)
        features = torch.stack([seen[digest] for digest, _ in asked])
        states, padding = self.forward.encode(features, [text for _, text in asked])
        answers = [[pairs[number].labels for number in numbers] for numbers in asked.values()]
        logits = self.forward.logits(states, padding, answers)
        order = [number for numbers in asked.values() for number in numbers]
        outcomes = self._likelihoods(logits, [pairs[number] for number in order])
        return [outcome for _, outcome in sorted(zip(order, outcomes, strict=True), key=itemgetter(0))]

    def _likelihoods(self, logits: torch.Tensor, pairs: Sequence[Pair]) -> Iterator[Likelihood | ModelError]:
        """Outcomes of *pairs* from the logits of all their answers' tokens, one pair after the other."""
        wanted = [(token, self._yes, self._no) for pair in pairs for token in pair.labels]
        chosen = logits.gather(-1, torch.tensor(wanted).to(logits.device))
        log_probs = iter((chosen - logits.logsumexp(-1, keepdim=True)).tolist())
        for pair in pairs:
            tokens = list(islice(log_probs, len(pair.labels)))
            if not all(map(isfinite, chain.from_iterable(tokens))):
                yield ModelError("the model's output is not finite")
                continue
            _, yes, no = tokens[0]
            yield Likelihood(tuple(token for token, _, _ in tokens), yes, no, pair.truncated)

    def example(self) -> LikelihoodCall:
        """A grey square."""
        return LikelihoodCall(
            Image(PIL.Image.new("RGB", (336, 336), (128, 128, 128)), "example"),
            QUESTION.replace("{}", "a red circle"),
        )


def load_network(directory: Path, layout: Layout) -> Network:
    """
    Build the network around the checkpoint's own tensors, every name and shape accounted for.

    The reference cuts the embeddings to the tokenizer's length (32128 to 32100 rows), so its softmax
    runs over that many; so does ours.
    """
    vocabulary = layout.tokenizer.size
    try:
        with torch.device("meta"):  # no memory and no random numbers for weights about to be replaced
            network = Network({**layout.config, "vocab_size": vocabulary}, layout.vision)
    except Exception as exc:  # transformers raises many kinds
        raise CheckpointError(f"{directory}: no network can be built: {in_short(exc)}") from exc
    weights = renamed(read_weights(directory))
    empty = network.state_dict()
    names = {name.removeprefix("t5."): name for name in empty if name not in ALIASES}
    expected = {theirs: tuple(empty[ours].shape) for theirs, ours in names.items()}
    for name in CUT:
        expected[name] = (layout.config["vocab_size"], *expected[name][1:])
    if wrong := misfit(weights, expected):
        raise CheckpointError(f"{directory}: the weights don't fit config.json: {wrong}")
    for name in CUT:
        weights[name] = weights[name][:vocabulary]
    found = {ours: weights[theirs] for theirs, ours in names.items()}
    network.load_state_dict(found, strict=False, assign=True)  # the aliases come with the next line
    network.t5.set_input_embeddings(network.t5.shared)
    embeddings = network.vision_tower.embeddings
    embeddings.position_ids = torch.arange(embeddings.num_positions)[None]  # a buffer, never saved
    return network
