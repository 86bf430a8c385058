"""NLI models: classifiers of pairs and T5s of TRUE's kind."""

import pytest

from models.core.calls import EntailmentCall
from models.core.contract import CheckpointError
from models.families.nli.model import Nli
from tests.support.nli_checkpoints import configure


def loaded(directory):
    return Nli(directory, dtype="float32", device="cpu")


@pytest.fixture(params=["nli", "nli of RoBERTa", "nli of TRUE"])
def nli(request, models):
    return models(request.param)


def test_a_long_premise_is_cut_and_the_outcome_says_so(nli):
    """Whatever the network's length: RoBERTa's positions begin behind that of padding."""
    calls = [EntailmentCall("a red circle " * 300, "a cat"), EntailmentCall("a red circle", "a cat")]
    long, short = nli.score([nli.prepare(call) for call in calls])

    assert (True, False) == (long.truncated, short.truncated)


def test_special_tokens_in_a_text_are_text(nli):
    """Nobody ends the premise by typing what ends it."""
    plain, typed = (nli.prepare(EntailmentCall(text, "a cat")) for text in ("a dog", "a dog </s>"))

    assert typed.data.ids.count(2) == plain.data.ids.count(2)
    assert typed.cost > plain.cost


# --- bad checkpoints ----------------------------------------------------------------------------


def no_tokenizer(directory):
    (directory / "tokenizer.json").unlink()


def more_layers(directory):
    configure(directory, num_hidden_layers=3)


def other_labels(directory):
    configure(directory, id2label={"0": "negative", "1": "neutral", "2": "positive"})


def code_of_its_own(directory):
    configure(directory, model_type="mine", auto_map={"AutoConfig": "mine.Mine"})
    (directory / "mine.py").write_text("raise SystemExit('ran')")


@pytest.mark.parametrize(
    ("spoil", "reason"),
    [
        (no_tokenizer, r"nli.*: (its tokenizer cannot be loaded|needs a fast tokenizer)"),
        (
            more_layers,
            r"model\.safetensors: weights are missing or of another shape: bert\.encoder\.layer\.2",
        ),
        (other_labels, r'config\.json: id2label must name "entailment" once, and names negative, neutral'),
        (code_of_its_own, r"nli.*: "),
    ],
    ids=lambda case: getattr(case, "__name__", ""),
)
def test_a_bad_checkpoint_is_refused_by_name(own, spoil, reason):
    """One line that names the file; nothing random is served and nothing of it is run."""
    directory = own("nli")
    spoil(directory)
    with pytest.raises(CheckpointError, match=reason):
        loaded(directory)


def test_a_t5_without_a_token_for_1_is_refused(own):
    """It cannot be one of TRUE's kind."""
    directory = own("nli of TRUE")
    path = directory / "tokenizer.json"
    path.write_text(path.read_text().replace('"1"', '"one"'))
    with pytest.raises(CheckpointError, match='no single token for "1"'):
        loaded(directory)
