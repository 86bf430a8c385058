"""VideoAlign: frames in pairs, the statistics of its outputs, and its LoRA."""

import pytest
import torch

from models.core.calls import VideoCall
from models.core.contract import ModelError
from models.families.videoalign.model import Lora
from tests.models.contract.qwens import SAID, VIDEOALIGN
from tests.models.contract.qwens import VIDEOS as CALLS
from tests.support.vl_checkpoints import outputs, set_in, tensors


def test_an_odd_number_of_frames_ends_with_its_last_one_twice(models):
    """Patches hold two frames."""
    short, full = CALLS[0].frames[:3], (*CALLS[0].frames[:3], CALLS[0].frames[2])
    one, other = outputs(models("videoalign"), VideoCall(short, "a cat"), VideoCall(full, "a cat"))

    assert one == other


def test_frames_of_different_sizes_are_refused(models):
    """With the reason, and without a number."""
    with pytest.raises(ModelError, match="frames are of different sizes"):
        models("videoalign").prepare(VideoCall((CALLS[0].frames[0], CALLS[2].frames[0]), "a cat"))


def test_without_means_and_deviations_outputs_are_those_of_the_head(own):
    """As in the released code."""
    directory = own("videoalign")
    set_in(directory, "inference_config")
    [total, *parts] = outputs(VIDEOALIGN.load(directory), CALLS[0])[0]

    assert parts == pytest.approx(SAID["videoalign"]["scores"][0]["plain"], rel=0, abs=1e-4)
    assert total == pytest.approx(sum(parts))


def test_a_merged_checkpoint_has_the_same_outputs(own, models):
    """Without the names of PEFT, and without a LoRA."""
    directory, plain, held = own("videoalign"), dict[str, torch.Tensor](), tensors(SAID["videoalign"])
    for name, each in held.items():
        own = name.removeprefix("base_model.model.")
        if ".base_layer." in own and own.endswith("weight"):
            lora = name.removesuffix("base_layer.weight")
            down, up = (held[f"{lora}lora_{letter}.default.weight"] for letter in "AB")
            plain[own.replace(".base_layer", "")] = each + 2 * up @ down
        elif "lora_" not in own:
            plain[own.replace(".base_layer", "")] = each
    torch.save(plain, directory / "checkpoint-20" / "model.pth")
    [found], [expected] = (
        outputs(each, CALLS[0]) for each in (VIDEOALIGN.load(directory), models("videoalign"))
    )

    assert found == pytest.approx(expected, rel=0, abs=1e-4)


def test_the_scale_of_a_lora_is_by_its_rank_or_the_root_of_it():
    """As in PEFT."""
    given = {"lora_enable": True, "lora_r": 64, "lora_alpha": 128}

    assert 2 == Lora(**given).scale
    assert 16 == Lora(**given, use_rslora=True).scale
