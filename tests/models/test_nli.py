"""NLI models: classifiers of pairs and T5s of TRUE's kind."""

import pytest
import torch
from tokenizers import Tokenizer
from transformers import AutoModelForSequenceClassification, T5ForConditionalGeneration

from models.core.calls import EntailmentCall
from models.core.contract import CheckpointError, ModelError
from models.core.outcomes import Entailment
from models.families.nli.model import Nli
from tests.support.nli_checkpoints import classifier, configure, roberta, true
from tests.support.spoiled_checkpoints import cut_weights, no_config, no_weights, pickled_weights

KINDS = pytest.mark.parametrize("make", [classifier, roberta, true], ids=lambda make: make.__name__)
PAIRS = [
    ("a red circle", "is there a circle ? yes"),
    ("the blue square", "what color is the square ? red"),
    ("a dog", "is there a cat ? no"),
    ("a", "cat"),
]


def loaded(directory):
    return Nli(directory, dtype="float32", device="cpu")


def probabilities(nli, *pairs):
    outcomes = nli.score([nli.prepare(EntailmentCall(*pair)) for pair in pairs])
    return [outcome.probability for outcome in outcomes]


def ids(directory, *texts):
    words = Tokenizer.from_file(str(directory / "tokenizer.json"))
    return words.encode(*texts)


def test_a_classifier_says_what_transformers_says(tmp_path):
    """The share of the label "entailment", found by its name in any case, of each pair on its own."""
    directory = classifier(tmp_path / "nli")
    network = AutoModelForSequenceClassification.from_pretrained(directory).eval()
    for pair, found in zip(PAIRS, probabilities(loaded(directory), *PAIRS), strict=True):
        text = ids(directory, *pair)
        inputs = {"input_ids": torch.tensor([text.ids]), "token_type_ids": torch.tensor([text.type_ids])}
        with torch.inference_mode():
            shares = network(**inputs).logits.softmax(-1)[0]

        assert shares[1].item() == pytest.approx(found, abs=1e-6)
        assert {0, 1} == set(text.type_ids)


def test_a_t5_is_asked_as_true_was_taught(tmp_path):
    """The probability of "1" as the first token after `premise: … hypothesis: …`."""
    directory = true(tmp_path / "nli")
    network = T5ForConditionalGeneration.from_pretrained(directory).eval()
    one = ids(directory, "1").ids[1]
    for pair, found in zip(PAIRS, probabilities(loaded(directory), *PAIRS), strict=True):
        text = ids(directory, "premise: {} hypothesis: {}".format(*pair)).ids[1:]  # without <s>, with </s>
        with torch.inference_mode():
            start = torch.tensor([[0]])
            shares = network(input_ids=torch.tensor([text]), decoder_input_ids=start).logits.softmax(-1)[0, 0]

        assert shares[one].item() == pytest.approx(found, abs=1e-6)


@KINDS
def test_company_changes_nothing(tmp_path, make):
    """Alone or beside longer pairs: the same within 1e-5, while other pairs differ."""
    nli = loaded(make(tmp_path / "nli"))
    together = probabilities(nli, *PAIRS)
    alone = [probabilities(nli, pair)[0] for pair in PAIRS]

    assert alone == pytest.approx(together, abs=1e-5)
    assert len(PAIRS) == len({round(found, 4) for found in together})


@KINDS
def test_a_long_premise_is_cut_and_the_outcome_says_so(tmp_path, make):
    """Whatever the network's length: RoBERTa's positions begin behind that of padding."""
    nli = loaded(make(tmp_path / "nli"))
    calls = [EntailmentCall("a red circle " * 300, "a cat"), EntailmentCall("a red circle", "a cat")]
    long, short = nli.score([nli.prepare(call) for call in calls])

    assert (True, False) == (long.truncated, short.truncated)


@KINDS
def test_special_tokens_in_a_text_are_text(tmp_path, make):
    """Nobody ends the premise by typing what ends it."""
    nli = loaded(make(tmp_path / "nli"))
    plain, typed = (nli.prepare(EntailmentCall(text, "a cat")) for text in ("a dog", "a dog </s>"))

    assert typed.data.ids.count(2) == plain.data.ids.count(2)
    assert typed.cost > plain.cost


def test_an_output_that_is_not_finite_is_an_error(tmp_path):
    """Never a number, and never 0."""
    nli = loaded(classifier(tmp_path / "nli"))
    with torch.no_grad():
        nli._network._network.classifier.bias.fill_(torch.nan)
    [outcome] = nli.score([nli.prepare(nli.example())])

    assert isinstance(outcome, ModelError)


@KINDS
def test_the_example_is_answered_and_the_model_says_what_it_is(tmp_path, make):
    """The call that warms it up; role, family and a revision made from the files."""
    nli = loaded(make(tmp_path / "nli"))
    [outcome] = nli.score([nli.prepare(nli.example())])

    assert isinstance(outcome, Entailment)
    assert ("nli", "transformers_nli") == (nli.info.role, nli.info.family)
    assert f"nli@{nli.info.revision}" == nli.info.label
    assert 12 == len(nli.info.revision)


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
        (no_config, r"config\.json: missing"),
        (no_tokenizer, r"nli.*: (its tokenizer cannot be loaded|needs a fast tokenizer)"),
        (no_weights, r"no weights found \(looked for model\.safetensors"),
        (pickled_weights, r"pytorch_model\.bin: weights are read from safetensors only"),
        (cut_weights, r"model\.safetensors: cannot be loaded"),
        (
            more_layers,
            r"model\.safetensors: weights are missing or of another shape: bert\.encoder\.layer\.2",
        ),
        (other_labels, r'config\.json: id2label must name "entailment" once, and names negative, neutral'),
        (code_of_its_own, r"nli.*: "),
    ],
    ids=lambda case: getattr(case, "__name__", ""),
)
def test_a_bad_checkpoint_is_refused_by_name(tmp_path, spoil, reason):
    """One line that names the file; nothing random is served and nothing of it is run."""
    directory = classifier(tmp_path / "nli")
    spoil(directory)
    with pytest.raises(CheckpointError, match=reason):
        loaded(directory)


def test_a_t5_without_a_token_for_1_is_refused(tmp_path):
    """It cannot be one of TRUE's kind."""
    directory = true(tmp_path / "nli")
    path = directory / "tokenizer.json"
    path.write_text(path.read_text().replace('"1"', '"one"'))
    with pytest.raises(CheckpointError, match='no single token for "1"'):
        loaded(directory)
