"""Checkpoints that cannot be served end the start: one clear line, exit status 2."""

import io
import json

import pytest
import sentencepiece
import torch

from tests.support.command import server
from tests.support.flant5_checkpoints import configure, golden_copy, save

__all__ = ["server"]

OWN = "[server]\nport = 0\n"  # the port is taken before anything is loaded
HEAD, SHARD = "lm_head.weight", "model-00002-of-00003"


def start(server, directory):
    """The lines that the service ends with when it is started on *directory*."""
    profile = directory.parent / "profile.toml"
    profile.write_text(f'{OWN}[models.vqa]\nfamily = "clip_flant5"\ncheckpoint = "{directory}"\n')
    store = f"sqlite:///{directory.parent}/questions.sqlite3"
    status, _, lines = server("--config", profile, SCOREGATE_CACHE__QUESTIONS=store)

    assert 2 == status
    return lines


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
    (no_tensors, "contains values that are not tensors"),
    (fewer_rows, "the tokenizer doesn't match: it has 1100 pieces, the embeddings have 1050 rows"),
    (pieces_of_a_llama, "not a T5 tokenizer"),
    (pieces_without_yes, 'the tokens "Yes" and "No" begin with the same piece'),
]


@pytest.mark.parametrize(("spoil", "told"), BAD, ids=[spoil.__name__ for spoil, _ in BAD])
def test_a_bad_checkpoint_ends_the_start_with_one_line(server, tmp_path, spoil, told):
    """It names the model and the file, and gives no advice to run what is in it."""
    directory = tmp_path / "checkpoint"
    spoil(directory)

    [line] = start(server, directory)
    assert line.startswith(f"scoregate-server: models.vqa: {directory}")
    assert told in line
    assert len(line) < 500
    assert "weights_only" not in line
