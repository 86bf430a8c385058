"""
Decoder VLMs: pairs of picture and question a second, with `score` of the service and with transformers.

The service's figure begins with patches and tokens in memory and ends with results in memory.  It computes a
picture once for all its questions in a batch, transformers once for each.  A batch has at most `AT_ONCE`
pictures, or chats of transformers; more run in several batches.  Weights are random.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import cache, partial
from random import Random

import torch
from transformers import Qwen3VLConfig, Qwen3VLForConditionalGeneration

from loadtest.gpu.bench import NEEDS_CUDA, Bench, drop
from loadtest.gpu.drift import BOUNDS, difference
from loadtest.gpu.encoders import bare, random_module, scored
from loadtest.gpu.geometry import Config
from loadtest.gpu.memory import GB
from loadtest.gpu.results import Row, left_out
from loadtest.gpu.steps import Step
from models.core.contract import Prepared
from models.families.batches import FeatureCache
from models.families.inputs import padded
from models.families.qwen_vl.model import QwenNetwork, QwenVl
from models.families.qwen_vl.rows import LabelledChat
from models.families.vl_inputs import Patches
from models.families.vlm_answers import Answers, likelihood

AT_ONCE = 8
MAX_IMAGES = 16
START = tuple(range(10, 26))  # tokens before a picture
OPENING = tuple(range(30, 38))  # all questions begin with these tokens
OWN_TOKENS = 16  # tokens of a question after them
YES, NO = (5,), (6,)
ANSWERS = Answers("", ("Yes", "Yes", "No"), True, likelihood)

Run = Callable[[Sequence[Prepared]], object]


class Decoder:
    """
    A Qwen3-VL with random weights, and chats for it.

    Args:
        config: of the language model and of the tower; `side` is that of the pictures.
    """

    def __init__(self, bench: Bench, config: Config) -> None:
        text, tower = config["text_config"], config["vision_config"]
        known = Qwen3VLConfig(
            text_config=text,
            vision_config=tower,
            image_token_id=text["vocab_size"] - 1,
            tie_word_embeddings=False,
        )
        self.network = QwenNetwork(
            random_module(bench, lambda: Qwen3VLForConditionalGeneration(known)), bench.device
        )
        self.model: QwenVl = bare(bench, QwenVl, network=self.network, _features=FeatureCache(0))
        self._device, self._across = bench.device, config["side"] // known.vision_config.patch_size
        vision = known.vision_config
        self._numbers = vision.in_channels * vision.temporal_patch_size * vision.patch_size**2

    def chats(self, images: int, questions: int) -> list[Prepared]:
        """Return questions about each of some distinct pictures."""
        tokens = (self._across // self.network.merged) ** 2
        found, random = list[Prepared](), Random(0)
        for image in range(images):
            patches = Patches(torch.rand(self._across**2, self._numbers), (1, self._across, self._across))
            trunk = (*START, *[self.network.pad] * tokens)
            for _ in range(questions):
                own = random.choices(range(40, 200), k=OWN_TOKENS)
                chat = LabelledChat([(str(image), patches)], trunk, (*OPENING, *own), (YES, YES, NO), ANSWERS)
                found.append(Prepared(chat.cost, chat))
        return found

    @torch.inference_mode()
    def theirs(self, batch: Sequence[Prepared]) -> list[float]:
        """Return log P("Yes") by transformers' own forward pass of whole chats, which are equally long."""
        chats: list[LabelledChat] = [prepared.data for prepared in batch]
        ids, mask = padded([(*chat.trunk, *chat.rest) for chat in chats], self._device)
        images = [patches for chat in chats for _, patches in chat.images]
        logits = self.network.module(
            input_ids=ids,
            attention_mask=mask,
            mm_token_type_ids=(ids == self.network.pad).int(),
            pixel_values=torch.cat([each.pixels for each in images]).to(self._device),
            image_grid_thw=torch.tensor([each.grid for each in images], device=self._device),
            use_cache=False,
            logits_to_keep=1,
        ).logits
        found: list[float] = logits[:, 0].float().log_softmax(-1)[:, YES[0]].tolist()
        return found


WAYS: Mapping[str, tuple[Callable[[Decoder], Run], bool]] = {
    "ours": (lambda decoder: partial(scored, decoder.model.score), False),
    "transformers": (lambda decoder: decoder.theirs, True),
}
"""The function of each way, and whether the chats of a batch count rather than its pictures."""


def steps(bench: Bench, make: Callable[[Bench, Config], Decoder] = Decoder) -> Iterator[Step]:
    """Yield each way of each decoder with each batch, then its drift and its memory."""
    for name, config in bench.geometry.decoders.items():
        made = cache(partial(make, bench, config))
        for way in WAYS:
            for images in (each for each in bench.geometry.pairs if each <= MAX_IMAGES):
                for questions in bench.geometry.questions:
                    what = f"{name}, {images} × {questions}, {way}"
                    yield Step(what, partial(measure, bench, what, made, way, images, questions))
        yield Step(f"{name}, drift", partial(drift, bench, name, made))
        yield Step(f"{name}, peak", partial(peak, bench, name, made))
        drop(made)


def measure(
    bench: Bench, what: str, made: Callable[[], Decoder], way: str, images: int, questions: int
) -> Iterator[Row]:
    """Measure pairs of picture and question a second."""
    decoder, (make, by_chat) = made(), WAYS[way]
    run, chats = make(decoder), decoder.chats(images, questions)
    size = AT_ONCE if by_chat else AT_ONCE * questions
    batches = [chats[start : start + size] for start in range(0, len(chats), size)]

    def whole() -> None:
        for batch in batches:
            run(batch)

    operations = bench.operations(whole)
    batch_s = bench.pace_s(whole)
    yield Row(what, len(chats) / batch_s, "pairs/s", share=operations / batch_s / bench.peak)


def drift(bench: Bench, name: str, made: Callable[[], Decoder]) -> Iterator[Row]:
    """Compare the scores of a batch with those of its chats alone, and with transformers'."""
    decoder = made()
    chats = decoder.chats(2, max(bench.geometry.questions))
    together, alone = scores(decoder, chats), [scores(decoder, [chat])[0] for chat in chats]
    yield difference(f"{name}, in a batch from alone", together, alone, BOUNDS[bench.dtype])
    theirs = [decoder.theirs([chat])[0] for chat in chats]
    yield difference(f"{name}, alone from transformers", alone, theirs, BOUNDS[bench.dtype])


def scores(decoder: Decoder, batch: Sequence[Prepared]) -> list[float]:
    """Return log P("Yes") of the chats of a batch."""
    return [found.log_p_yes for found in scored(decoder.model.score, batch)]


def peak(bench: Bench, name: str, made: Callable[[], Decoder]) -> Iterator[Row]:
    """Measure the most that is allocated during a batch, above the weights."""
    what = f"{name}, peak of {AT_ONCE} × 1 above the weights"
    if not bench.cuda:
        yield left_out(what, NEEDS_CUDA)
        return
    decoder = made()
    batch = decoder.chats(AT_ONCE, 1)
    above = bench.peak_bytes(partial(scored, decoder.model.score, batch))
    yield Row(what, above / GB, "GB", note=f"{sum(prepared.cost for prepared in batch)} patches and tokens")
