"""Checkpoints that cannot be served end the start: one clear line, exit status 2."""

import io
import json
import subprocess
import sys
from pathlib import Path

import pytest
import sentencepiece
import torch

from models.base import CheckpointError
from models.clip_flant5 import ClipFlanT5
from service import __main__
from tests.flant5_checkpoints import configure, golden_copy, save

HEAD, SHARD = "lm_head.weight", "model-00002-of-00003"


def start(directory, monkeypatch, capsys):
    """The lines that the service ends with when it is started on *directory*."""
    profile = directory.parent / "profile.toml"
    profile.write_text(f'[models.vqa]\nfamily = "clip_flant5"\ncheckpoint = "{directory}"\n')
    monkeypatch.setattr(sys, "argv", ["scoregate-server", "--config", str(profile)])
    monkeypatch.setattr(__main__, "configure_logging", lambda: None)  # the tests' own handlers stay
    with pytest.raises(SystemExit) as ended:
        __main__.main()

    assert 2 == ended.value.code
    return capsys.readouterr().err.splitlines()


def nothing(directory):
    pass


def empty(directory):
    directory.mkdir()


def a_file(directory):
    directory.write_text("")


def llama(directory):
    configure(golden_copy(directory), model_type="llama", architectures=["LlamaForCausalLM"])


def not_json(directory):
    (golden_copy(directory) / "config.json").write_text("<html>")


def no_weights(directory):
    (golden_copy(directory) / "pytorch_model.bin").unlink()


def no_pieces(directory):
    (golden_copy(directory) / "spiece.model").unlink()


def cut(path):
    path.write_bytes(path.read_bytes()[: path.stat().st_size // 2])


def cut_bin(directory):
    cut(golden_copy(directory, layout="sharded bin") / f"pytorch_{SHARD}.bin")


def cut_safetensors(directory):
    cut(golden_copy(directory, layout="sharded safetensors") / f"{SHARD}.safetensors")


def no_shard(directory):
    (golden_copy(directory, layout="sharded safetensors") / f"{SHARD}.safetensors").unlink()


def a_shard_outside(directory):
    index = golden_copy(directory, layout="sharded bin") / "pytorch_model.bin.index.json"
    index.write_text(json.dumps({"weight_map": {HEAD: "../elsewhere.bin"}}))


def no_map(directory):
    (golden_copy(directory, layout="sharded bin") / "pytorch_model.bin.index.json").write_text("{}")


def code(directory):
    save({HEAD: print}, golden_copy(directory), "bin")


def a_pointer(directory):
    """What git leaves in place of a large file that was not fetched."""
    (golden_copy(directory) / "pytorch_model.bin").write_text("version https://git-lfs.github.com/spec/v1\n")


def no_tensors(directory):
    save({"epoch": 3, HEAD: torch.zeros(1)}, golden_copy(directory), "bin")


def fewer_rows(directory):
    configure(golden_copy(directory), vocab_size=1050)


def trained(directory, words, **kinds):
    """Pieces of another tokenizer in place of the golden ones."""
    model = io.BytesIO()
    sentencepiece.SentencePieceTrainer.train(
        sentence_iterator=iter(words * 20),
        model_writer=model,
        vocab_size=40,
        hard_vocab_limit=False,
        minloglevel=2,
        **kinds,
    )
    (golden_copy(directory) / "spiece.model").write_bytes(model.getvalue())


def pieces_of_a_llama(directory):
    trained(directory, ["Yes or No, she said", "a red circle"], unk_id=0, bos_id=1, eos_id=2)


def pieces_without_yes(directory):
    trained(directory, ["a red circle", "the blue one"], pad_id=0, eos_id=1, unk_id=2, bos_id=-1)


BAD = [
    (nothing, "checkpoint: no such directory"),
    (empty, "config.json: missing"),
    (a_file, "no such directory"),
    (llama, "model_type is 'llama', not 'clip_t5' or 't5'"),
    (not_json, "config.json: Expecting value"),
    (no_weights, "no weights found (looked for model.safetensors, pytorch_model.bin)"),
    (no_pieces, "spiece.model: missing"),
    (cut_bin, f"pytorch_{SHARD}.bin: cannot be read as weights: RuntimeError"),
    (cut_safetensors, f"{SHARD}.safetensors: cannot be read as weights: SafetensorError"),
    (no_shard, f"1 of 3 shards missing: {SHARD}.safetensors"),
    (a_shard_outside, "a shard lies outside the checkpoint"),
    (no_map, "no weight_map"),
    (code, "something else than plain tensors, and nothing else is unpickled"),
    (a_pointer, "something else than plain tensors, and nothing else is unpickled"),
    (no_tensors, "holds something else than tensors by name"),
    (fewer_rows, "the tokenizer doesn't match: it has 1100 pieces, the embeddings have 1050 rows"),
    (pieces_of_a_llama, "not the pieces of a T5"),
    (pieces_without_yes, 'the first pieces of "Yes" and "No" cannot be told apart'),
]


@pytest.mark.parametrize(("spoil", "told"), BAD, ids=[spoil.__name__ for spoil, _ in BAD])
def test_a_bad_checkpoint_ends_the_start_with_one_line(tmp_path, monkeypatch, capsys, spoil, told):
    """It names the model and the file, and gives no advice to run what is in it."""
    directory = tmp_path / "checkpoint"
    spoil(directory)

    [line] = start(directory, monkeypatch, capsys)
    assert line.startswith(f"scoregate-server: models.vqa: {directory}")
    assert told in line
    assert len(line) < 500
    assert "weights_only" not in line


REFUSED = {
    "config.json": [
        ("mm_projector_type", "linear"),
        ("mm_vision_select_feature", "cls_patch"),
        ("mm_use_im_start_end", True),
        ("mm_use_im_patch_token", True),
        ("use_mm_proj", False),
        ("feed_forward_proj", "relu"),
        ("feed_forward_proj", None),
        ("dense_act_fn", "relu"),
        ("tie_word_embeddings", True),
        ("tie_word_embeddings", None),
        ("scale_decoder_outputs", True),
        ("decoder_start_token_id", 2),
        ("image_aspect_ratio", "anyres"),
        ("image_aspect_ratio", ["pad"]),
        ("mm_vision_select_layer", -6),
        ("mm_vision_select_layer", [-2, -5]),
        ("d_model", "64"),
        ("num_heads", 0),
        ("vocab_size", None),
        ("layer_norm_epsilon", "small"),
    ],
    "vision_tower/config.json": [
        ("model_type", "siglip_vision_model"),
        ("num_channels", 1),
        ("image_size", [56, 56]),
        ("num_attention_heads", 5),
        ("hidden_act", "spline"),
    ],
    "vision_tower/preprocessor_config.json": [
        ("image_processor_type", "SiglipImageProcessor"),
        ("do_resize", False),
        ("do_rescale", False),
        ("do_normalize", False),
        ("resample", 2),
        ("rescale_factor", 0.5),
        ("rescale_factor", "1/255"),
        ("size", 64),
        ("size", {"shortest_edge": 64}),
        ("size", {"height": 56, "width": 64}),
        ("size", None),
        ("crop_size", 48),
        ("crop_size", {"height": 56, "width": 48}),
        ("image_mean", [0.5]),
        ("image_std", [0.5, 0.0, 0.5]),
        ("image_std", "imagenet"),
    ],
    "tokenizer_config.json": [("extra_ids", "many"), ("extra_ids", -1)],
}


@pytest.fixture(scope="module")
def golden(tmp_path_factory):
    return golden_copy(tmp_path_factory.mktemp("golden") / "checkpoint")


@pytest.mark.parametrize(
    ("file", "name", "value"),
    [(file, name, value) for file, settings in REFUSED.items() for name, value in settings],
)
def test_a_setting_that_is_not_implemented_is_refused_not_passed_over(golden, file, name, value):
    """The line names the file; what would change a score is never ignored."""
    path = golden / file
    held = path.read_text()
    configure(golden, file, **{name: value})

    try:
        with pytest.raises(CheckpointError) as refused:
            ClipFlanT5(golden, dtype="float32", device="cpu")
    finally:
        path.write_text(held)
    message = str(refused.value)
    assert message.startswith(str(golden))
    assert "\n" not in message
    told = {
        "hidden_act": "spline",
        "image_processor_type": "Siglip",
        "num_attention_heads": "number of attention heads",
        "scale_decoder_outputs": "tie_word_embeddings",
    }
    assert told.get(name, name) in message


@pytest.mark.parametrize(
    "steps",
    [{"size": {"height": 56, "width": 56}}, {"do_center_crop": False}],
    ids=["squashed", "not cropped"],
)
def test_steps_that_suit_padded_pictures_only_are_refused_for_others(tmp_path, steps):
    """They would squash a picture, or leave it longer than the tower is."""
    directory = configure(golden_copy(tmp_path / "c"), image_aspect_ratio="square")
    configure(directory, "vision_tower/preprocessor_config.json", **steps)

    with pytest.raises(CheckpointError, match="doesn't end in the tower's 56x56 pixels"):
        ClipFlanT5(directory, dtype="float32", device="cpu")


def misfit(directory, change):
    golden_copy(directory, change)
    with pytest.raises(CheckpointError) as wrong:
        ClipFlanT5(directory, dtype="float32", device="cpu")
    return str(wrong.value).partition("the weights don't fit config.json: ")[2]


def without(*parts):
    return lambda tensors: {n: t for n, t in tensors.items() if not any(part in n for part in parts)}


def test_weights_that_do_not_fit_are_listed_with_their_numbers(tmp_path):
    """Missing, unexpected, of another shape or type: how many of each, the first few by name."""
    vision = "vision_tower.vision_tower.vision_model."

    def change(tensors):
        tensors = without("mm_projector", "layernorm")(tensors)
        tensors["mm_projector.weight"] = torch.zeros(64, 32)
        tensors[HEAD] = tensors[HEAD][:, :32]
        tensors[f"{vision}embeddings.class_embedding"] = torch.zeros(32, dtype=torch.int8)
        return tensors

    missing, unexpected, misshapen, integers = misfit(tmp_path / "c", change).split("; ")
    assert missing.startswith("6 missing: ")
    assert missing.endswith(", …")
    assert "1 unexpected: mm_projector.weight" == unexpected
    assert "1 of another shape: lm_head.weight (1128, 32) instead of (1128, 64)" == misshapen
    assert "1 no floating-point numbers: vision_tower.embeddings.class_embedding torch.int8" == integers


def test_a_flan_t5_without_eyes_is_told_what_it_lacks(tmp_path):
    """A plain T5 has the right model type, and neither tower nor projector."""
    told = misfit(tmp_path / "c", without("vision_tower", "mm_projector"))

    assert told.startswith("75 missing: ")
    assert "unexpected" not in told


def test_names_of_the_shared_embedding_that_differ_are_an_error(tmp_path):
    """Which one would be right cannot be known."""

    def change(tensors):
        tensors["decoder.embed_tokens.weight"] += 1
        return tensors

    golden_copy(tmp_path / "c", change)
    with pytest.raises(CheckpointError, match=r"decoder\.embed_tokens\.weight: another tensor than shared"):
        ClipFlanT5(tmp_path / "c", dtype="float32", device="cpu")


@pytest.mark.integration
def test_a_pickle_with_code_is_refused_by_the_real_process(tmp_path):
    """One line on stderr behind the log, status 2, and nothing was run."""
    ran = tmp_path / "ran"

    class Payload:
        def __reduce__(self):
            return Path.touch, (ran,)

    save({HEAD: Payload()}, golden_copy(tmp_path / "c"), "bin")
    profile = tmp_path / "profile.toml"
    profile.write_text(f'[models.vqa]\nfamily = "clip_flant5"\ncheckpoint = "{tmp_path / "c"}"\n')
    command = [sys.executable, "-m", "service", "--config", str(profile)]
    ended = subprocess.run(command, capture_output=True, text=True, timeout=120, check=False)

    assert 2 == ended.returncode
    assert "nothing else is unpickled" in ended.stderr.splitlines()[-1]
    assert "Traceback" not in ended.stderr
    assert not ran.exists()
