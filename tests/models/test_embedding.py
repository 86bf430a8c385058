"""Models for sentences: the mean of the last hidden states, at length 1."""

import json

import pytest

from models.core.calls import TextCall
from models.core.contract import CheckpointError
from models.families.embedding.model import SentenceTransformer
from tests.models.contract.kind import outcomes


@pytest.fixture
def directory(own):
    return own("sentences")


def loaded(directory):
    return SentenceTransformer(directory, dtype="float32", device="cpu")


def test_a_text_is_cut_at_the_models_positions(models):
    """16 of 18, since the first two are for padding; the result says so."""
    model = models("sentences")
    cut, whole = outcomes(model, TextCall("red " * 40), TextCall("red"))

    assert (True, False) == (cut.truncated, whole.truncated)
    assert 16 == model.prepare(TextCall("red " * 40)).cost


@pytest.mark.parametrize(
    ("modes", "refused"),
    [(["mean_tokens"], False), (["cls_token"], True), (["mean_tokens", "max_tokens"], True), ([], True)],
)
def test_another_pooling_is_refused(directory, modes, refused):
    """Its embeddings would be other numbers."""
    (directory / "1_Pooling").mkdir()
    config = {"word_embedding_dimension": 16, "pooling_mode_lasttoken": False}
    config |= {f"pooling_mode_{mode}": True for mode in modes}
    (directory / "1_Pooling" / "config.json").write_text(json.dumps(config))
    if not refused:
        assert loaded(directory)
        return
    with pytest.raises(CheckpointError, match="only pooling_mode_mean_tokens"):
        loaded(directory)


@pytest.mark.parametrize(
    ("kind", "refused"), [("Normalize", False), ("Dense", True), ("mine.Whitening", True), (None, True)]
)
def test_another_module_is_refused(directory, kind, refused):
    """What it adds to the mean would be missing; a list of something else is no list of modules."""
    types = [f"sentence_transformers.models.{name}" for name in ("Transformer", "Pooling", kind)]
    modules = [{"idx": n, "path": "", "type": name} for n, name in enumerate(types)] if kind else {"a": 1}
    (directory / "modules.json").write_text(json.dumps(modules))
    if not refused:
        assert loaded(directory)
        return
    with pytest.raises(CheckpointError, match=r"modules\.json"):
        loaded(directory)


def test_a_word_without_a_row_of_the_embeddings_is_refused(directory):
    """A text with it would have no embedding, and would end the process of a GPU."""
    path = directory / "tokenizer.json"
    written = json.loads(path.read_text())
    written["model"]["vocab"] |= {f"word{number}": 100 + number for number in range(9)}
    path.write_text(json.dumps(written))
    with pytest.raises(CheckpointError, match="words, and the embeddings have 32 rows"):
        loaded(directory)
