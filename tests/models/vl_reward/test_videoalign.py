"""VideoAlign: frames in their order, the statistics of its outputs, and its LoRA."""

import shutil

import pytest
import torch

from models.core.calls import VideoCall
from models.core.contract import ModelError
from models.families.videoalign.model import Lora, VideoAlign
from tests.models.contract.kind import ON_THE_CPU
from tests.models.contract.qwens import SAID
from tests.models.contract.qwens import VIDEOS as CALLS
from tests.support.vl_checkpoints import outputs, set_in, tensors


def test_order_and_number_of_frames_are_part_of_the_key(models):
    """The other way round, or without its end, a video is another call with other outputs."""
    call = CALLS[0]
    others = [VideoCall(call.frames[::-1], call.prompt), VideoCall(call.frames[:2], call.prompt)]

    assert len({each.key(()) for each in (call, *others)}) == 3
    first, *rest = outputs(models("videoalign"), call, *others)
    assert first not in rest


def test_an_odd_number_of_frames_ends_with_its_last_one_twice(models):
    """Patches hold two frames."""
    short, full = CALLS[0].frames[:3], (*CALLS[0].frames[:3], CALLS[0].frames[2])
    one, other = outputs(models("videoalign"), VideoCall(short, "a cat"), VideoCall(full, "a cat"))

    assert one == other


def test_frames_of_different_sizes_are_refused(models):
    """With the reason, and without a number."""
    with pytest.raises(ModelError, match="frames are of different sizes"):
        models("videoalign").prepare(VideoCall((CALLS[0].frames[0], CALLS[2].frames[0]), "a cat"))


def test_without_means_and_deviations_outputs_are_those_of_the_head(directories, tmp_path):
    """As in the released code."""
    shutil.copytree(directories("videoalign"), tmp_path, dirs_exist_ok=True)
    set_in(tmp_path, "inference_config")
    [total, *parts] = outputs(VideoAlign(tmp_path, **ON_THE_CPU), CALLS[0])[0]

    assert parts == pytest.approx(SAID["videoalign"]["scores"][0]["plain"], rel=0, abs=1e-4)
    assert total == pytest.approx(sum(parts))


def test_the_last_step_is_read(directories, models, tmp_path):
    """By its number, not by its name."""
    shutil.copytree(directories("videoalign"), tmp_path, dirs_exist_ok=True)
    (tmp_path / "checkpoint-20").rename(tmp_path / "checkpoint-100")
    for name in ("checkpoint-99", "checkpoint-999-old"):
        (tmp_path / name).mkdir()
        (tmp_path / name / "model.pth").write_bytes(b"-")

    assert outputs(models("videoalign"), CALLS[0]) == outputs(VideoAlign(tmp_path, **ON_THE_CPU), CALLS[0])


def test_a_merged_checkpoint_has_the_same_outputs(directories, models, tmp_path):
    """Without the names of PEFT, and without a LoRA."""
    shutil.copytree(directories("videoalign"), tmp_path, dirs_exist_ok=True)
    plain = dict[str, torch.Tensor]()
    held = tensors(SAID["videoalign"])
    for name, each in held.items():
        own = name.removeprefix("base_model.model.")
        if ".base_layer." in own and own.endswith("weight"):
            lora = name.removesuffix("base_layer.weight")
            down, up = (held[f"{lora}lora_{letter}.default.weight"] for letter in "AB")
            plain[own.replace(".base_layer", "")] = each + 2 * up @ down
        elif "lora_" not in own:
            plain[own.replace(".base_layer", "")] = each
    torch.save(plain, tmp_path / "checkpoint-20" / "model.pth")

    [found], [expected] = (
        outputs(VideoAlign(tmp_path, **ON_THE_CPU), CALLS[0]),
        outputs(models("videoalign"), CALLS[0]),
    )
    assert found == pytest.approx(expected, rel=0, abs=1e-4)


def test_the_scale_of_a_lora_is_by_its_rank_or_the_root_of_it():
    """As in PEFT."""
    given = {"lora_enable": True, "lora_r": 64, "lora_alpha": 128}

    assert 2 == Lora(**given).scale
    assert 16 == Lora(**given, use_rslora=True).scale
