"""The fast forward pass gives what the network of transformers' modules gives."""

import math
import shutil
import weakref
from pathlib import Path

import numpy as np
import PIL.Image
import pytest
import torch
import torch._inductor.config
from transformers.models.t5.modeling_t5 import T5Attention

import models
from models.core.calls import LikelihoodCall
from models.families.clip_flant5 import forward
from models.families.clip_flant5.forward import Forward
from models.families.clip_flant5.model import ClipFlanT5
from models.families.clip_flant5.network import ClipFlanT5Network
from models.families.clip_flant5.t5 import Weights, bucket, gelu_new
from models.images.image import Image

CPU = torch.device("cpu")
DEMO = Path(models.__file__).parent / "demo" / "weights" / "clip_flant5"
WORDS = 50
T5 = {
    "vocab_size": WORDS,
    "d_model": 32,
    "d_kv": 6,
    "d_ff": 40,
    "num_layers": 3,
    "num_decoder_layers": 2,
    "num_heads": 3,
    "feed_forward_proj": "gated-gelu",
}
VISION = {
    "hidden_size": 16,
    "intermediate_size": 24,
    "num_hidden_layers": 3,
    "num_attention_heads": 2,
    "image_size": 20,
    "patch_size": 5,
}
# Each row: an image, the text around it, answers.
PIXELS = torch.randn(2, 3, 20, 20, generator=torch.Generator().manual_seed(1))
ASKED = [
    (0, ([3, 4, 1], [5, 6, 7, 8, 1]), [[9, 1]]),
    (0, ([3, 4, 1], [5, 1]), [[9, 1], [10, 1], [11, 12, 13, 14, 15, 16, 17, 18, 1]]),
    (1, ([3, 1], list(range(5, 49))), [[9, 1], [1]]),
]
PLAIN_C = {  # what torch.compile writes: kernels for one number at a time, half as long to compile
    "cpp.simdlen": 1,
    "cpp.vec_isa_ok": True,  # nor does it try out which vectors there are
    "compile_threads": 1,  # or processes start that each load torch
}
SHORT = [(image, text, answers[:1]) for image, text, answers in ASKED]  # fewer tokens than d_kv


def network(seed: int = 0, *, t5=T5, vision=VISION, **more) -> ClipFlanT5Network:
    torch.manual_seed(seed)
    made = ClipFlanT5Network(t5 | more, vision).eval()
    torch.nn.init.normal_(made.t5.lm_head.weight, std=32**-0.5)
    return made


def fast(made: ClipFlanT5Network, dtype: torch.dtype = torch.float32, **options) -> Forward:
    """`Forward` with the weights of *made*, which keeps them."""
    twin = ClipFlanT5Network(made.t5.config.to_dict() | {"mm_vision_select_layer": made.layer}, VISION)
    twin.load_state_dict(made.state_dict())
    return Forward(twin, device=CPU, dtype=dtype, **options)


@torch.inference_mode()
def log_probs(quick: Forward, asked=ASKED) -> torch.Tensor:
    """Of every token of the vocabulary, for each token of all answers."""
    features = quick.features(PIXELS)[[image for image, _, _ in asked]]
    states, padding = quick.encode(features, [text for _, text, _ in asked])
    return quick.logits(states, padding, [answers for _, _, answers in asked]).log_softmax(-1)


@torch.inference_mode()
def plain_log_probs(made: ClipFlanT5Network, asked=ASKED) -> torch.Tensor:
    rows = [
        made.log_probs(PIXELS[image], text, answer) for image, text, answers in asked for answer in answers
    ]
    return torch.cat(rows)


@pytest.mark.parametrize(
    "more",
    [
        {},
        {"num_heads": 2, "d_kv": 16},
        {"relative_attention_num_buckets": 16, "relative_attention_max_distance": 20},
        {"mm_vision_select_layer": -1},
        {"mm_vision_select_layer": 1},
    ],
)
@pytest.mark.parametrize("asked", [ASKED, SHORT], ids=["with keys", "without keys"])
def test_every_log_probability_is_the_plain_network_s(more, asked):
    """Float32, within 1e-5, whatever the geometry, and however the decoder reads the encoder's states."""
    made = network(**more)

    torch.testing.assert_close(log_probs(fast(made), asked), plain_log_probs(made, asked), atol=1e-5, rtol=0)


def test_in_bfloat16_it_is_as_near_to_float32_as_the_plain_network():
    """Weights rounded alike; the mean error is not above that of transformers' modules under autocast."""
    made = network().to(torch.bfloat16)
    exact = plain_log_probs(network().to(torch.bfloat16).float())
    with torch.autocast("cpu", torch.bfloat16):
        theirs = (plain_log_probs(made) - exact).abs().mean()
    ours = (log_probs(fast(made, torch.bfloat16)) - exact).abs().mean()

    assert 0 < ours <= theirs < 0.05


def test_one_text_alone_or_among_longer_ones_is_the_same():
    """Padding and neighbours move no log-probability by more than 1e-5."""
    quick = fast(network())
    alone = torch.cat([log_probs(quick, [asked]) for asked in ASKED])

    torch.testing.assert_close(log_probs(quick), alone, atol=1e-5, rtol=0)


@pytest.mark.parametrize(("dtype", "most"), [("float32", 1e-5), ("bfloat16", 5e-3)])
def test_neighbours_move_no_score_of_the_demo_model(dtype, most):
    """Eight questions of several lengths about two pictures, together and one by one."""
    model = ClipFlanT5(DEMO, dtype=dtype, device="cpu")
    noise = np.random.default_rng(3).integers(0, 256, (2, 90, 120, 3), np.uint8)
    pictures = [Image.of(PIL.Image.fromarray(pixels), str(row)) for row, pixels in enumerate(noise)]
    questions = [
        "Is there a circle?",
        "Is the red circle left of the big blue square?",
        "Is it?",
        "Two stars?",
    ]
    ready = [model.prepare(LikelihoodCall(picture, text)) for picture in pictures for text in questions]

    alone = [model.score([one])[0] for one in ready]
    for one, other in zip(alone, model.score(ready), strict=True):
        assert one.log_probs == pytest.approx(other.log_probs, abs=4 * most)
        scores = [math.exp(sum(outcome.log_probs) / 2) for outcome in (one, other)]
        assert scores[0] == pytest.approx(scores[1], abs=most)


@pytest.mark.parametrize("bidirectional", [True, False])
@pytest.mark.parametrize(("buckets", "furthest"), [(32, 128), (16, 100)])
def test_every_distance_falls_into_transformers_bucket(bidirectional, buckets, furthest):
    """Up to the longest context, rounding at the edges included."""
    distances = torch.arange(-2700, 2701)

    expected = T5Attention._relative_position_bucket(distances, bidirectional, buckets, furthest)
    assert torch.equal(expected, bucket(distances, buckets, furthest, bidirectional))


def test_gelu_through_the_sigmoid_is_gelu_through_tanh():
    """Also where both saturate."""
    x = torch.linspace(-20, 20, 4001)

    torch.testing.assert_close(
        gelu_new(x), torch.nn.functional.gelu(x, approximate="tanh"), atol=1e-6, rtol=1e-6
    )


def test_lengths_are_padded_to_few():
    """Texts of 18 to 61 tokens, image included, are encoded at three lengths, each a multiple of 16."""
    quick, seen = fast(network()), set()
    for tokens in range(1, 45):
        states, padding = quick.encode(torch.zeros(1, 16, 32), [([1], [1] * tokens)])
        seen.add(states.shape[1])

        assert tokens + 17 == (padding == 0).sum()
    assert {32, 48, 64} == seen


def test_the_head_reads_real_tokens_of_answers_only():
    """Answers of 2, 2, 2, 9, 2 and 1 tokens: 18 rows of logits, not 6 answers of 9."""
    assert (18, WORDS) == log_probs(fast(network())).shape


def test_one_encoder_row_serves_all_answers_to_a_question(monkeypatch):
    """Three answers to one question: one row is encoded, whichever way the decoder reads it."""
    quick, rows = fast(network()), []
    encode = quick._encoder
    monkeypatch.setattr(
        quick, "_encoder", lambda states, padding: rows.append(len(states)) or encode(states, padding)
    )

    log_probs(quick)
    assert [3] == rows


def test_the_last_vision_layer_is_neither_run_nor_kept():
    """With layer -2 chosen, NaNs in the last layer reach no score."""
    made = network()
    expected = log_probs(fast(made))
    for name, tensor in made.vision_tower.state_dict().items():
        if name.startswith(("encoder.layers.2.", "post_layernorm")):
            tensor.fill_(math.nan)

    assert torch.equal(expected, log_probs(fast(made)))


def test_weights_are_held_once(monkeypatch):
    """At no time are there more bytes than the network had and one joined tensor more."""
    made = network()
    sizes = {
        weakref.ref(tensor.untyped_storage()): tensor.nbytes
        for name, tensor in made.state_dict().items()
        if not name.endswith("embed_tokens.weight")
    }
    total, held, most = sum(sizes.values()), [], []

    class Watched(Weights):
        def take(self, *names, **options):
            taken = super().take(*names, **options)
            if len(names) > 1:
                held.append(taken.nbytes)
            alive = [size for storage, size in sizes.items() if storage() is not None]
            most.append(sum(alive) + sum(held))
            return taken

    monkeypatch.setattr(forward, "Weights", Watched)
    kept = Forward(made, device=CPU, dtype=torch.float32)

    assert max(held) > 0
    assert total <= max(most) <= total + max(held)
    assert kept is not None


@pytest.mark.skipif(shutil.which("g++") is None, reason="torch.compile needs a C++ compiler on a CPU")
def test_compiled_it_says_the_same():
    """Float32, within 1e-5."""
    made = network()

    with torch._inductor.config.patch(PLAIN_C):
        compiled = log_probs(fast(made, compile=True))
    torch.testing.assert_close(compiled, plain_log_probs(made), atol=1e-5, rtol=0)
