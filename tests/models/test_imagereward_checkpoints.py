"""The files of an ImageReward: other forms with the same content, and those that cannot be used."""

import pytest
import torch
from transformers import BertTokenizer

from models.core.contract import CheckpointError
from tests.models.contract.kind import outcomes
from tests.models.contract.kinds import IMAGEREWARD, SAID
from tests.support.imagereward_checkpoints import as_safetensors, configure, tensors
from tests.support.nli_checkpoints import save_words


def before_pytorch_1_6(directory):
    torch.save(tensors(), directory / "ImageReward.pt", _use_new_zipfile_serialization=False)


def without_what_is_not_used(directory):
    held = {name: tensor for name, tensor in tensors().items() if "_proj." not in name}
    del held["blip.text_encoder.embeddings.position_ids"]
    torch.save(held, directory / "ImageReward.pt")


def words_of_another_format(directory):
    words = BertTokenizer.from_pretrained(directory)
    words.backend_tokenizer.save(str(directory / "tokenizer.json"))
    (directory / "vocab.txt").unlink()


@pytest.mark.parametrize(
    "change", [as_safetensors, before_pytorch_1_6, without_what_is_not_used, words_of_another_format]
)
def test_other_files_with_the_same_content_give_the_same_scores(own, change):
    """Safetensors, an old pickle, tensors that no score needs, and the words as tokenizer.json."""
    directory = own("imagereward")
    change(directory)
    found = outcomes(IMAGEREWARD.load(directory), *IMAGEREWARD.calls[:2])

    expected = [row["score"] for row in SAID["scores"][:2]]
    assert [each.value for each in found] == pytest.approx(expected, abs=1e-5)


def no_weights(directory):
    (directory / "ImageReward.pt").unlink()


def cut(directory):
    path = directory / "ImageReward.pt"
    path.write_bytes(path.read_bytes()[:5000])


def code(directory):
    torch.save({"mlp.layers.0.weight": print}, directory / "ImageReward.pt")


def no_config(directory):
    (directory / "med_config.json").unlink()


def no_words(directory):
    (directory / "vocab.txt").unlink()


def broken_words(directory):
    (directory / "vocab.txt").write_text("red\ngreen\n")


def other_words(directory):
    (save_words(directory) / "vocab.txt").unlink()


def more_words(directory):
    with (directory / "vocab.txt").open("a") as file:
        file.write("dragon\nknight\ncastle\n")


def a_layer_less(directory):
    held = {name: tensor for name, tensor in tensors().items() if "blocks.1.attn.qkv" not in name}
    torch.save(held, directory / "ImageReward.pt")


def a_part_more(directory):
    torch.save({**tensors(), "blip.itm_head.weight": torch.zeros(2, 2)}, directory / "ImageReward.pt")


def no_tower(directory):
    torch.save({"mlp.layers.0.weight": torch.zeros(2, 2)}, directory / "ImageReward.pt")


def no_head(directory):
    held = {name: tensor for name, tensor in tensors().items() if not name.startswith("mlp.")}
    torch.save(held, directory / "ImageReward.pt")


def a_head_of_another_width(directory):
    wide = {"mlp.layers.0.weight": torch.zeros(1024, 65)}
    torch.save(tensors() | wide, directory / "ImageReward.pt")


def narrow_tower(directory):
    held = {
        name: tensor[..., :100] if name.endswith("pos_embed") else tensor
        for name, tensor in tensors().items()
    }
    torch.save(held, directory / "ImageReward.pt")


def a_wider_text_tower(directory):
    configure(directory, intermediate_size=128)


def no_size(directory):
    configure(directory, vocab_size=None)


def a_word_for_a_size(directory):
    configure(directory, hidden_size="64")


def relative_positions(directory):
    configure(directory, position_embedding_type="relative_key")


BAD = [
    (no_weights, r"reward: no weights found \(looked for ImageReward\.safetensors, ImageReward\.pt\)"),
    (cut, r"ImageReward\.pt: cannot be read as weights"),
    (code, r"ImageReward\.pt: .*nothing else is unpickled"),
    (no_config, r"med_config\.json: missing"),
    (no_words, r"neither tokenizer\.json nor vocab\.txt; copy that of google-bert/bert-base-uncased"),
    (broken_words, r"vocab\.txt: cannot be loaded: "),
    (other_words, r"tokenizer\.json: not BERT's: it puts texts between <s> and </s>"),
    (more_words, r"vocab\.txt: \d+ words, and the embeddings have \d+ rows"),
    (a_layer_less, r"the weights don't fit: 2 missing: blip\.visual_encoder\.blocks\.1\.attn\.qkv\."),
    (a_part_more, r"the weights don't fit: 1 unexpected: blip\.itm_head\.weight"),
    (no_tower, r"ImageReward\.pt: has no vision tower of BLIP \(blip\.visual_encoder\.…\)"),
    (no_head, r"ImageReward\.pt: not a head of linear layers: layers\.0\.weight"),
    (a_head_of_another_width, r"the head takes 65 numbers, and the text tower has 64"),
    (narrow_tower, r"a multiple of 64 numbers, not 196 patches and 100 numbers"),
    (a_wider_text_tower, r"the weights don't fit: .* of another shape: blip\.text_encoder\."),
    (no_size, r"med_config\.json: vocab_size is None"),
    (a_word_for_a_size, r"med_config\.json: hidden_size is '64'"),
    (relative_positions, r"position_embedding_type is 'relative_key'; only 'absolute' is implemented"),
]


@pytest.mark.parametrize(("spoil", "reason"), BAD, ids=[spoil.__name__ for spoil, _ in BAD])
def test_a_checkpoint_that_cannot_be_used_is_one_line_that_names_the_file(own, spoil, reason):
    """Before anything is served."""
    directory = own("imagereward")
    spoil(directory)
    with pytest.raises(CheckpointError, match=reason):
        IMAGEREWARD.load(directory)
