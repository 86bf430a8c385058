"""Image-text matching of BLIP and BLIP-2: transformers' logits, on small random checkpoints."""

import json

import pytest
import torch
from transformers import AutoTokenizer, BlipForImageTextRetrieval, BlipImageProcessorPil

from models.core.calls import ContrastCall, RewardCall
from models.core.contract import CheckpointError, ModelError
from models.core.family import Plan
from models.core.outcomes import Reward
from models.families.blip_itm.model import KINDS, MAX_TOKENS, BlipItm
from tests.support.blip_checkpoints import SPECIAL, WORDS, blip, blip_2
from tests.support.blip_models import PICTURES, outcomes, table
from tests.support.dry_run import dry_run
from tests.support.runs import runs_of
from tests.support.spoiled_checkpoints import cut_weights, no_config, no_weights, pickled_weights

MAKERS = {"blip": blip, "blip-2": blip_2}
PROMPTS = ["a red circle", "the blue square left of a green dog on the cat", "A DOG", "zebra"]
CALLS = [RewardCall(picture, prompt) for picture in PICTURES for prompt in PROMPTS]


@pytest.fixture(scope="module", params=MAKERS)
def kind(request):
    return request.param


@pytest.fixture(scope="module")
def directory(kind, tmp_path_factory):
    """A checkpoint, to be read only."""
    return MAKERS[kind](tmp_path_factory.mktemp("blip"))


@pytest.fixture(scope="module")
def model(directory):
    return BlipItm(directory, dtype="float32", device="cpu")


def logits(model, *calls):
    return [outcome.value for outcome in outcomes(model, *calls)]


def reference(kind, directory, call):
    """Transformers' own forward pass of one pair."""
    network = KINDS[kind].network.from_pretrained(directory).eval()
    text = AutoTokenizer.from_pretrained(directory)(call.prompt, return_tensors="pt")
    pixels = BlipImageProcessorPil.from_pretrained(directory)(images=call.image.rgb, return_tensors="pt")
    inputs = {"pixel_values": pixels.pixel_values, "input_ids": text.input_ids}
    inputs["attention_mask"] = text.attention_mask
    with torch.inference_mode():
        if kind == "blip":
            return network(**inputs, use_itm_head=True).itm_score[0]
        return network(**inputs, use_image_text_matching_head=True).logits_per_image[0]


def test_every_logit_is_that_of_transformers(kind, directory, model):
    """That of a match minus that of none; all pairs in one batch, within 1e-5."""
    expected = [(pair := reference(kind, directory, call))[1].item() - pair[0].item() for call in CALLS]

    assert expected == pytest.approx(logits(model, *CALLS), rel=1e-5, abs=1e-5)
    assert len({round(logit, 3) for logit in expected}) == len(CALLS)


def contrast(kind, directory, call):
    """Transformers' own cosine of one pair; of BLIP-2 the largest of its queries."""
    network = KINDS[kind].network.from_pretrained(directory).eval()
    text = AutoTokenizer.from_pretrained(directory)(call.prompt, return_tensors="pt")
    pixels = BlipImageProcessorPil.from_pretrained(directory)(images=call.image.rgb, return_tensors="pt")
    inputs = {"pixel_values": pixels.pixel_values, "input_ids": text.input_ids}
    inputs["attention_mask"] = text.attention_mask
    with torch.inference_mode():
        if kind == "blip":
            return network(**inputs, use_itm_head=False).itm_score.item()
        return network(**inputs, use_image_text_matching_head=False).logits_per_image.item()


def test_every_contrast_is_that_of_transformers(kind, directory, model):
    """With the matching head's outputs, in one batch with calls that need these alone."""
    contrasts = [ContrastCall(call.image, call.prompt) for call in CALLS]
    batch = [call for pair in zip(CALLS, contrasts, strict=True) for call in pair]
    found = outcomes(model, *batch)
    alone, both = found[::2], found[1::2]
    expected = [contrast(kind, directory, call) for call in CALLS]

    assert expected == pytest.approx([outcome.value for outcome in both], rel=1e-5, abs=1e-5)
    assert len({round(cosine, 5) for cosine in expected}) == len(CALLS)
    for one, outcome, call in zip(alone, both, CALLS, strict=True):
        _, none, match = outcome.outputs
        assert [none, match] == pytest.approx(reference(kind, directory, call).tolist(), rel=1e-5, abs=1e-5)
        assert match - none == pytest.approx(one.value, abs=1e-5)


def test_the_contrast_reads_cls_where_matching_reads_enc(tmp_path):
    """As in LAVIS: [ENC] begins only texts that are matched."""
    directory, _ = published(tmp_path)
    model = BlipItm(directory, dtype="float32", device="cpu")
    calls = [ContrastCall(call.image, call.prompt) for call in CALLS]

    expected = [contrast("blip", directory, call) for call in CALLS]
    assert expected == pytest.approx(logits(model, *calls), rel=1e-5, abs=1e-5)


def published(directory):
    """As Salesforce's: [DEC] and [ENC] have rows behind those of the tokenizer's words."""
    words = len(SPECIAL) + len(WORDS)
    return blip(directory, vocab_size=words + 2, bos_token_id=words), words + 1


def named(directory):
    """With [ENC] in the tokenizer."""
    blip(directory, vocab_size=24)
    words = AutoTokenizer.from_pretrained(directory)
    words.add_special_tokens({"additional_special_tokens": ["[ENC]"]})
    words.save_pretrained(directory)
    return directory, words.convert_tokens_to_ids("[ENC]")


@pytest.mark.parametrize("make", [published, named])
def test_a_blip_reads_enc_in_place_of_cls(make, tmp_path):
    """As LAVIS, which trained it so; the logits are those of transformers for these ids."""
    directory, enc = make(tmp_path)
    model = BlipItm(directory, dtype="float32", device="cpu")
    network = BlipForImageTextRetrieval.from_pretrained(directory).eval()
    words = AutoTokenizer.from_pretrained(directory)
    pixels = BlipImageProcessorPil.from_pretrained(directory)
    differences = []
    for call in CALLS:
        text = words(call.prompt, return_tensors="pt")
        seen = pixels(images=call.image.rgb, return_tensors="pt").pixel_values
        both = []
        for first in (enc, words.cls_token_id):
            ids = torch.cat([torch.tensor([[first]]), text.input_ids[:, 1:]], 1)
            with torch.inference_mode():
                none, match = network(
                    pixel_values=seen, input_ids=ids, attention_mask=text.attention_mask, use_itm_head=True
                ).itm_score[0]
            both.append((match - none).item())
        assert both[0] == pytest.approx(logits(model, call)[0], rel=1e-4, abs=1e-4)
        differences.append(abs(both[0] - both[1]))

    assert max(differences) > 0.1


def test_company_changes_nothing(model):
    """Alone or beside longer prompts and other pictures: the same within 1e-5."""
    alone = [logits(model, call)[0] for call in CALLS]

    assert alone == pytest.approx(logits(model, *CALLS), rel=1e-5, abs=1e-5)
    assert alone[::-1] == pytest.approx(logits(model, *CALLS[::-1]), rel=1e-5, abs=1e-5)


def test_a_picture_of_several_prompts_is_looked_at_once(model):
    """Two pictures, eight calls."""
    with runs_of(model.network.vision_model) as looked:
        logits(model, *CALLS)

    assert [2] == [len(each["pixel_values"]) for each in looked]


def test_a_long_prompt_is_cut_and_special_tokens_in_it_are_text(model):
    """At 35 tokens; nobody ends the prompt by typing what ends it."""
    long, short, typed = (
        model.prepare(RewardCall(PICTURES[0], prompt)).data[0]
        for prompt in ("red " * 34, "red " * 33, "a [SEP] dog")
    )

    assert (MAX_TOKENS, True) == (len(long.ids), long.truncated)
    assert (MAX_TOKENS, False) == (len(short.ids), short.truncated)
    assert 1 == typed.ids.count(typed.ids[-1])


def test_in_bfloat16_only_the_vision_tower_is_rounded(directory, model):
    """As transformers keeps the Q-Former; the logits are near those of float32."""
    rough = BlipItm(directory, dtype="bfloat16", device="cpu")

    assert {torch.bfloat16} == {weight.dtype for weight in rough.network.vision_model.parameters()}
    assert {torch.float32} == {weight.dtype for weight in rough.network.itm_head.parameters()}
    assert logits(model, *CALLS) == pytest.approx(logits(rough, *CALLS), abs=0.5)


def test_an_output_that_is_not_finite_is_an_error(directory):
    """Never a number, and never 0."""
    model = BlipItm(directory, dtype="float32", device="cpu")
    with torch.no_grad():
        model.network.itm_head.bias.fill_(torch.nan)
    [outcome] = outcomes(model, model.example())

    assert isinstance(outcome, ModelError)


def test_a_table_loads_the_checkpoint_with_its_label(directory):
    """And the model answers its own example."""
    family, settings = table("blip_itm", "itm", directory, id="ours", revision="7")
    model = family.load("left", settings)
    [outcome] = outcomes(model, model.example())

    assert ("ours@7", "itm") == (model.info.label, model.info.role)
    assert isinstance(outcome, Reward)


def test_a_plan_counts_the_numbers(directory, model):
    """Those of its tensors, none of which is loaded."""
    family, settings = table("blip_itm", "itm", directory)
    count = sum(weight.numel() for weight in model.network.parameters())

    assert Plan(directory.name, str(directory), count) == family.plan("ours", settings)


def test_a_tensor_that_is_left_on_the_cpu_raises(directory):
    """As on a GPU; without that the batch is answered."""
    with dry_run():
        model = BlipItm(directory, dtype="bfloat16", device="cuda", revision="-")
        batch = [model.prepare(call) for call in CALLS]

        assert [Reward] * len(CALLS) == [*map(type, model.score(batch))]
        model.network.itm_head.to("cpu")
        with pytest.raises(RuntimeError, match="device"):
            model.score(batch)


@pytest.mark.parametrize("spoil", [no_config, no_weights, cut_weights, pickled_weights])
def test_a_spoiled_checkpoint_is_one_line(tmp_path, spoil):
    """Which names the file."""
    directory = blip_2(tmp_path / "blip")
    spoil(directory)
    with pytest.raises(CheckpointError, match="blip"):
        BlipItm(directory, dtype="float32", device="cpu")


def test_pictures_of_another_size_than_the_network_takes_are_refused(tmp_path):
    """At the start, and not with the first picture."""
    directory = blip(tmp_path / "blip")
    path = directory / "preprocessor_config.json"
    path.write_text(json.dumps({**json.loads(path.read_text()), "size": {"height": 20, "width": 28}}))

    with pytest.raises(CheckpointError, match=r"shape \(3, 20, 28\)"):
        BlipItm(directory, dtype="float32", device="cpu")
