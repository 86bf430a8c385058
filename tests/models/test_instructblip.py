"""InstructBLIP and BLIP-2 with a FlanT5: transformers' likelihoods, on small random checkpoints."""

import json

import pytest
import torch
from transformers import AutoTokenizer, BlipImageProcessorPil

from models.core.calls import LikelihoodCall
from models.core.contract import CheckpointError, ModelError
from models.core.family import Plan
from models.core.outcomes import Likelihood
from models.families.clip_flant5.tokens import T5Tokenizer
from models.families.instructblip.model import MAX_TOKENS, NETWORKS, InstructBlip
from tests.support.blip_checkpoints import PIECES, blip_2, blip_2_t5, instructblip
from tests.support.blip_models import (
    ANSWERS,
    PICTURES,
    are_of_one_distribution,
    likelihoods,
    numbers,
    outcomes,
    table,
)
from tests.support.dry_run import dry_run
from tests.support.runs import runs_of
from tests.support.spoiled_checkpoints import cut_weights, no_config, no_weights, pickled_weights

MAKERS = {"instructblip": instructblip, "blip-2": blip_2_t5}
QUESTIONS = ["Question: a red dog ?", "is there a blue circle left of the square ?", "dog"]
CALLS = likelihoods(QUESTIONS)
WORDS = T5Tokenizer(PIECES)


@pytest.fixture(scope="module", params=MAKERS)
def kind(request):
    return request.param


@pytest.fixture(scope="module")
def directory(kind, tmp_path_factory):
    """A checkpoint, to be read only."""
    return MAKERS[kind](tmp_path_factory.mktemp("blip"))


@pytest.fixture(scope="module")
def model(directory):
    return InstructBlip(directory, dtype="float32", device="cpu")


@pytest.fixture(scope="module")
def reference(kind, directory):
    """Transformers' own forward pass of one call: log-probabilities of the answer, and of yes and no."""
    network = NETWORKS[kind].from_pretrained(directory).eval()
    processor = BlipImageProcessorPil.from_pretrained(directory)
    instruction = AutoTokenizer.from_pretrained(directory)  # the same words as those of the Q-Former

    def of(call):
        text = torch.tensor([[network.config.image_token_id] * 4 + WORDS.encode(call.question)])
        answer = WORDS.encode(call.answer)
        inputs = {"pixel_values": processor(images=call.image.rgb, return_tensors="pt").pixel_values}
        inputs |= {"input_ids": text, "labels": torch.tensor([answer])}
        if kind == "instructblip":
            read = instruction(call.question, return_tensors="pt")
            inputs |= {"qformer_input_ids": read.input_ids, "qformer_attention_mask": read.attention_mask}
        with torch.inference_mode():
            log_probs = network(**inputs).logits[0].log_softmax(-1)
        first = [WORDS.encode(word)[0] for word in ("yes", "no")]
        return [*log_probs[range(len(answer)), answer].tolist(), *log_probs[0, first].tolist()]

    return of


def test_every_number_is_that_of_transformers(model, reference):
    """Of answers of several lengths, all in one batch, within 2e-5: kernels differ between CPUs."""
    found = outcomes(model, *CALLS)

    for call, one in zip(CALLS, found, strict=True):
        assert reference(call) == pytest.approx(numbers(one), rel=2e-5, abs=1e-5)
    assert len({round(one.log_probs[0], 3) for one in found}) == len(CALLS)


def test_company_changes_nothing(model):
    """Alone or beside longer questions and other pictures: the same within 2e-5."""
    for call, found in zip(CALLS, outcomes(model, *CALLS), strict=True):
        assert numbers(found) == pytest.approx(numbers(outcomes(model, call)[0]), rel=2e-5, abs=1e-5)


def test_choices_labels_and_first_tokens_are_of_the_same_distribution(model):
    """Each answer of a choice is as likely as by itself; its first token as a label."""
    are_of_one_distribution(model, QUESTIONS[0])


def test_a_picture_and_a_question_are_encoded_once(model):
    """Whatever is asked about them."""
    whole = model.network.whole
    calls = [LikelihoodCall(PICTURES[0], each, answer) for each in QUESTIONS for answer in ANSWERS]
    with runs_of(whole.vision_model) as looks, runs_of(whole.language_model.encoder) as reads:
        outcomes(model, *calls)

    assert [1] == [len(each["pixel_values"]) for each in looks]
    assert [3] == [len(each["inputs_embeds"]) for each in reads]


def test_a_long_question_is_cut_and_says_so(model):
    """At 128 tokens."""
    batch = [model.prepare(LikelihoodCall(PICTURES[0], "dog " * count, "yes")) for count in (200, 9)]

    assert MAX_TOKENS == len(batch[0].data.text) > len(batch[1].data.text)
    assert [True, False] == [found.truncated for found in model.score(batch)]


def test_an_output_that_is_not_finite_is_an_error(directory):
    """Never a number, and never 0."""
    model = InstructBlip(directory, dtype="float32", device="cpu")
    with torch.no_grad():
        model.network.whole.language_projection.bias.fill_(torch.nan)

    assert [ModelError] == [*map(type, outcomes(model, model.example()))]


def test_bfloat16_is_near(directory, model):
    """Weights are rounded, logits are not."""
    rough = InstructBlip(directory, dtype="bfloat16", device="cpu")

    assert {torch.bfloat16} == {weight.dtype for weight in rough.network.whole.vision_model.parameters()}
    for exact, found in zip(outcomes(model, *CALLS), outcomes(rough, *CALLS), strict=True):
        assert numbers(exact) == pytest.approx(numbers(found), abs=2)


def test_a_table_loads_the_checkpoint_with_its_label_and_questions(directory):
    """Those of LAVIS; the model answers its own example."""
    family, settings = table("instructblip", "vqa", directory, id="ours", revision="7")
    model = family.load("left", settings)

    assert ("ours@7", "vqa") == (model.info.label, model.info.role)
    assert model.info.question.startswith('Question: Does this figure show "{}"?')
    assert [Likelihood] == [*map(type, outcomes(model, model.example()))]


def test_a_plan_counts_the_numbers(directory, model):
    """Those of its tensors, none of which is loaded."""
    family, settings = table("instructblip", "vqa", directory)
    count = sum(weight.numel() for weight in model.network.whole.parameters())

    assert Plan(directory.name, str(directory), count) == family.plan("ours", settings)


def test_a_tensor_that_is_left_on_the_cpu_raises(directory):
    """As on a GPU; without that the batch is answered."""
    with dry_run():
        model = InstructBlip(directory, dtype="bfloat16", device="cuda", revision="-")
        assert [Likelihood] * len(CALLS) == [*map(type, outcomes(model, *CALLS))]
        model.network.whole.language_projection.to("cpu")
        with pytest.raises(RuntimeError, match="device"):
            outcomes(model, *CALLS)


@pytest.mark.parametrize("spoil", [no_config, no_weights, cut_weights, pickled_weights])
def test_a_spoiled_checkpoint_is_one_line(tmp_path, spoil):
    """Which names the file."""
    directory = instructblip(tmp_path / "blip")
    spoil(directory)
    with pytest.raises(CheckpointError, match="blip"):
        InstructBlip(directory, dtype="float32", device="cpu")


def test_another_language_model_than_a_t5_is_refused(tmp_path):
    """Such as that of a BLIP-2 for retrieval, which has none."""
    directory = blip_2(tmp_path / "blip")
    with pytest.raises(CheckpointError, match="must be a T5"):
        InstructBlip(directory, dtype="float32", device="cpu")


def test_a_tokenizer_with_more_words_than_embeddings_is_refused(tmp_path):
    """That of the Q-Former as that of the language model."""
    directory = instructblip(tmp_path / "blip")
    path = directory / "qformer_tokenizer" / "tokenizer.json"
    written = json.loads(path.read_text())
    written["model"]["vocab"] |= {f"word{number}": 100 + number for number in range(9)}
    path.write_text(json.dumps(written))
    with pytest.raises(CheckpointError, match="words, and the embeddings have 24 rows"):
        InstructBlip(directory, dtype="float32", device="cpu")
