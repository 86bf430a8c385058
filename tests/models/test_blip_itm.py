"""Image-text matching of BLIP and BLIP-2: transformers' logits, on small random checkpoints."""

import json

import pytest
import torch
from transformers import AutoTokenizer, BlipForImageTextRetrieval, BlipImageProcessorPil

from models.core.calls import ContrastCall, RewardCall
from models.core.contract import CheckpointError
from models.families.blip_itm.model import MAX_TOKENS, BlipItm
from tests.models.contract.blips import PAIRS, PICTURES
from tests.models.contract.kind import outcomes
from tests.models.contract.references import matching
from tests.support.blip_checkpoints import SPECIAL, WORDS, blip
from tests.support.runs import runs_of

CALLS = [RewardCall(*pair) for pair in PAIRS]


@pytest.fixture(params=["blip", "blip-2"])
def model(request, models):
    return models(request.param)


def logits(model, *calls):
    return [outcome.value for outcome in outcomes(model, *calls)]


def test_the_contrast_reads_cls_where_matching_reads_enc(tmp_path):
    """As in LAVIS: [ENC] begins only texts that are matched."""
    directory, _ = published(tmp_path)
    model = BlipItm(directory, dtype="float32", device="cpu")
    calls = [ContrastCall(call.image, call.prompt) for call in CALLS]

    expected = [cosine for cosine, *_ in map(matching(directory), calls)]
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


def test_pictures_of_another_size_than_the_network_takes_are_refused(tmp_path):
    """At the start, and not with the first picture."""
    directory = blip(tmp_path / "blip")
    path = directory / "preprocessor_config.json"
    path.write_text(json.dumps({**json.loads(path.read_text()), "size": {"height": 20, "width": 28}}))

    with pytest.raises(CheckpointError, match=r"shape \(3, 20, 28\)"):
        BlipItm(directory, dtype="float32", device="cpu")
