"""What loads as a CLIP-FlanT5, whatever wrote it, and scores as the reference does."""

import json

import PIL.Image
import pytest
import torch
from transformers import CLIPImageProcessorPil, T5Config

from models.core.contract import CheckpointError
from models.families.clip_flant5.layout import read_pixels, read_tower
from models.images.pixels import CLIP_MEAN
from tests.support.flant5_checkpoints import (
    NUMBERS,
    SHOWS,
    Stock,
    configure,
    golden_copy,
    likelihoods,
    load,
    picture,
    score,
)

PAIRS = [(0, 0), (2, 3), (4, 5)]
SHARED = (
    "shared.weight",
    "embed_tokens.weight",
    "encoder.embed_tokens.weight",
    "decoder.embed_tokens.weight",
)
VISION = "vision_tower.vision_tower.vision_model."


def assert_golden(directory, pairs=PAIRS):
    """The checkpoint in *directory* gives the reference's scores."""
    expected = [pair["score"] for pair in NUMBERS["pairs"] if (pair["image"], pair["prompt"]) in pairs]
    assert expected == pytest.approx(
        [score(found) for found in likelihoods(load(directory), pairs)], abs=1e-5
    )


@pytest.mark.parametrize("layout", ["bin", "sharded bin", "safetensors", "sharded safetensors"])
def test_every_layout_gives_the_reference_scores(tmp_path, layout):
    """One file or shards with an index, of either kind."""
    assert_golden(golden_copy(tmp_path / "c", layout=layout))


def kept(name):
    """The shared embedding under one of its names only."""
    return lambda tensors: {n: t for n, t in tensors.items() if n == name or n not in SHARED}


def named(old, new):
    return lambda tensors: {n.replace(old, new): t for n, t in tensors.items()}


NAMES = {
    **{f"only {name}": kept(name) for name in SHARED},
    "no buffer of positions": lambda tensors: {n: t for n, t in tensors.items() if "position_ids" not in n},
    "a tower once less deep": named(VISION, "vision_tower.vision_model."),
    "a tower of transformers 5": named(VISION, "vision_tower.vision_tower."),
    "a tower as this service calls it": named(VISION, "vision_tower."),
    "all inside a module": lambda tensors: {f"module.{n}": t for n, t in tensors.items()},
    "all inside a model": lambda tensors: {f"model.{n}": t for n, t in tensors.items()},
    "a bias that T5 never used": lambda tensors: (
        tensors
        | {"decoder.block.0.layer.1.EncDecAttention.relative_attention_bias.weight": torch.zeros(32, 4)}
    ),
}


@pytest.mark.parametrize("change", NAMES.values(), ids=NAMES)
def test_every_set_of_names_gives_the_reference_scores(tmp_path, change):
    """Several names of the shared embedding, prefixes, and what older tools left behind."""
    assert_golden(golden_copy(tmp_path / "c", change, "safetensors"))


@pytest.mark.parametrize(
    "values",
    [
        {"model_type": "t5"},
        {"mm_projector_type": None, "mm_vision_select_layer": None, "num_decoder_layers": None},
        {"image_grid_pinpoints": None, "use_mm_proj": None, "dense_act_fn": None},
    ],
    ids=["t5", "left out", "older"],
)
def test_every_form_of_the_configuration_gives_the_reference_scores(tmp_path, values):
    """Either model type, and defaults left out."""
    assert_golden(configure(golden_copy(tmp_path / "c"), **values))


def test_a_configuration_that_a_newer_transformers_wrote_gives_the_reference_scores(tmp_path):
    """It calls embeddings tied that are not, and says in another place that outputs are not scaled."""
    directory = configure(golden_copy(tmp_path / "c"), model_type="t5")
    path = directory / "config.json"
    path.write_text(T5Config(**json.loads(path.read_text())).to_json_string())

    assert json.loads(path.read_text())["tie_word_embeddings"]
    assert_golden(directory)


STEPS = {
    "the published form": {
        "size": 56,
        "crop_size": 56,
        "feature_extractor_type": "CLIPFeatureExtractor",
        "image_processor_type": None,
        "rescale_factor": None,
    },
    "a square": {"size": {"height": 56, "width": 56}},
    "no crop of what is square": {"do_center_crop": False, "crop_size": 224},
    "everything left out but sizes": dict.fromkeys(
        ("do_resize", "do_center_crop", "do_rescale", "do_normalize", "resample", "image_mean", "image_std")
    ),
}


@pytest.mark.parametrize("steps", STEPS.values(), ids=STEPS)
def test_every_form_of_the_processor_that_means_the_same_gives_the_reference_scores(tmp_path, steps):
    """Sizes as numbers or tables, steps said or left out."""
    directory = golden_copy(tmp_path / "c")
    assert_golden(configure(directory, "vision_tower/preprocessor_config.json", **steps))


def test_a_processor_config_of_the_tower_is_read_first(tmp_path):
    """As transformers 5 saves it: with another mean, and without the old file."""
    directory = golden_copy(tmp_path / "c")
    old = directory / "vision_tower" / "preprocessor_config.json"
    steps = json.loads(old.read_text())
    (old.parent / "processor_config.json").write_text(
        json.dumps({"image_processor": {**steps, "image_mean": [0.5, 0.25, 0.75]}})
    )

    assert (0.5, 0.25, 0.75) == load(directory).pixels.mean


def test_without_a_processor_the_towers_size_and_clips_constants_are_taken(tmp_path):
    """`preprocessor_config.json` is optional."""
    directory = golden_copy(tmp_path / "c")
    (directory / "vision_tower" / "preprocessor_config.json").unlink()

    assert_golden(directory)


def test_a_whole_clip_configuration_holds_the_towers(tmp_path):
    """`vision_tower/config.json` may be that of a CLIP, with a `vision_config`."""
    directory = golden_copy(tmp_path / "c")
    path = directory / "vision_tower" / "config.json"
    path.write_text(json.dumps({"model_type": "clip", "vision_config": json.loads(path.read_text())}))

    assert_golden(directory)


def test_square_pictures_are_resized_and_cropped_as_the_reference_does(tmp_path):
    """`image_aspect_ratio` "square": its 36 scores."""
    directory = configure(golden_copy(tmp_path / "c"), image_aspect_ratio="square")
    pairs = [(image, prompt) for image in range(6) for prompt in range(6)]
    expected = [value for row in NUMBERS["image_aspect_ratio_square"]["score"] for value in row]

    found = [score(likelihood) for likelihood in likelihoods(load(directory), pairs)]
    assert expected == pytest.approx(found, abs=1e-5)


def test_the_published_tower_needs_no_file_and_no_request(tmp_path):
    """ViT-L/14 at 336 pixels is known by name; another tower must lie beside the weights."""
    path = tmp_path / "vision_tower" / "config.json"
    for name in (None, "openai/clip-vit-large-patch14-336", "/srv/openai/clip-vit-large-patch14-336"):
        tower = read_tower(path, name)
        sizes = [tower[n] for n in ("hidden_size", "num_hidden_layers", "patch_size", "image_size")]
        assert [1024, 24, 14, 336] == sizes

    with pytest.raises(CheckpointError, match="clip-vit-base-patch32"):
        read_tower(path, "openai/clip-vit-base-patch32")
    assert (336, CLIP_MEAN) == ((pixels := read_pixels(path.parent, 336, pad=True)).size, pixels.mean)


# --- other geometries ---------------------------------------------------------------------------

GEOMETRIES = {
    "narrow heads": (
        {"d_model": 40, "d_kv": 12, "num_heads": 5, "d_ff": 72, "num_layers": 3, "num_decoder_layers": 1},
        {"patch_size": 8, "image_size": 40, "hidden_size": 24, "num_attention_heads": 3},
    ),
    "the last hidden state": (
        {"mm_vision_select_layer": -1, "d_kv": 24, "relative_attention_num_buckets": 16},
        {"num_hidden_layers": 2, "hidden_act": "gelu", "image_size": 28},
    ),
    "an earlier one": (
        {"mm_vision_select_layer": -3, "num_heads": 2, "relative_attention_max_distance": 20},
        {"num_hidden_layers": 5, "layer_norm_eps": 1e-3, "intermediate_size": 48},
    ),
    "counted from the front": (
        {"mm_vision_select_layer": 1, "num_layers": 1, "num_decoder_layers": 3, "layer_norm_epsilon": 1e-3},
        {"patch_size": 16, "image_size": 50},
    ),
    "square pictures": ({"image_aspect_ratio": "square", "vocab_size": 1100}, {"patch_size": 7}),
}


@pytest.mark.parametrize("geometry", GEOMETRIES.values(), ids=GEOMETRIES)
def test_other_geometries_score_as_transformers_own_classes_do(tmp_path, geometry):
    """Random weights, the steps of the reference written out: log-probabilities within 1e-4."""
    stock = Stock(*geometry)
    model = load(stock.save(tmp_path / "c"))
    found = likelihoods(model, PAIRS)

    for (image, prompt), likelihood in zip(PAIRS, found, strict=True):
        pixels = processed(picture(image).rgb, stock)
        texts = model.tokenizer.around_image(SHOWS.replace("{}", NUMBERS["prompts"][prompt]["text"]))
        expected = stock.log_probs(pixels, *texts, rows=1100)
        assert expected == pytest.approx(likelihood.log_probs, abs=1e-4)
    apart = {round(likelihood.log_probs[0], 2) for likelihood in found}
    assert len(PAIRS) == len(apart)  # weights and pictures matter


def processed(rgb: PIL.Image.Image, stock: Stock) -> torch.Tensor:
    """A picture by transformers' own processor, padded before where the checkpoint says so."""
    side = stock.tower_config["image_size"]
    if stock.config["image_aspect_ratio"] == "pad":
        longest = max(rgb.size)
        square = PIL.Image.new("RGB", (longest, longest), (122, 116, 104))
        square.paste(rgb, ((longest - rgb.width) // 2, (longest - rgb.height) // 2))
        rgb = square
    processor = CLIPImageProcessorPil(size={"shortest_edge": side}, crop_size=side)
    return processor(rgb, return_tensors="pt").pixel_values[0]


def test_a_mean_and_deviation_of_its_own_reach_the_pixels(tmp_path):
    """And the colour of the padding, which is the mean's."""
    directory = golden_copy(tmp_path / "c")
    file = "vision_tower/preprocessor_config.json"
    model = load(configure(directory, file, image_mean=[0.5, 0.25, 0.75], image_std=[0.5, 0.5, 0.25]))

    tall = model.pixels(PIL.Image.new("RGB", (10, 100), "white"))
    corner, middle = tall[:, 0, 0].tolist(), tall[:, 28, 28].tolist()
    assert [1.0, 1.5, 1.0] == pytest.approx(middle, abs=1e-5)
    assert [0.0, 0.0, 0.0] == pytest.approx(corner, abs=0.02)  # rounded down to whole colours


def test_the_revision_names_every_file_that_decides_a_score(tmp_path):
    """Weights, configuration, pieces, tower and processor: a change of one is another revision."""
    directory = golden_copy(tmp_path / "c")
    revisions = [load(directory).info.revision]
    for file in ("config.json", "vision_tower/config.json", "vision_tower/preprocessor_config.json"):
        configure(directory, file, processor_class="changed")
        revisions.append(load(directory).info.revision)
    # A field that SentencePiece doesn't know: other bytes, the same pieces.
    pieces = directory / "spiece.model"
    pieces.write_bytes(pieces.read_bytes() + b"\xc0\x3e\x01")
    revisions.append(load(directory).info.revision)

    assert 5 == len(set(revisions))


def test_a_call_cannot_reach_beyond_the_tokenizers_rows(tmp_path):
    """Rows behind the tokenizer's length take no share of the probability."""
    directory = golden_copy(
        tmp_path / "c",
        lambda tensors: {n: loud(t) if n == "lm_head.weight" else t for n, t in tensors.items()},
    )

    assert_golden(directory)


def loud(head: torch.Tensor) -> torch.Tensor:
    """Rows 1100 to 1128 that would win every softmax."""
    return torch.cat([head[:1100], torch.full_like(head[1100:], 1e3)])
