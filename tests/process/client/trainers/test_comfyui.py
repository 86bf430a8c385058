"""scoregate.trainers.comfyui: a folder that ComfyUI loads from its custom_nodes."""

import importlib.util
import shutil
import sys
from math import isnan
from pathlib import Path
from types import ModuleType

import pytest
import torch

import scoregate.trainers.comfyui
from demo.process import free_port, url
from scoregate.errors import NoScoreError, ScoregateError
from scoregate.trainers.reward import Reward

IMAGES = torch.rand(
    5, 4, 24, 3, generator=torch.Generator().manual_seed(0)
)  # BHWC; 4 rows look like channels


@pytest.fixture
def nodes(tmp_path, monkeypatch):
    """The node classes, of a copy of the folder, loaded by its path as ComfyUI does."""
    folder = tmp_path / "custom_nodes" / "scoregate"
    shutil.copytree(Path(scoregate.trainers.comfyui.__file__).parent, folder)
    name = str(folder).replace(".", "_x_")
    spec = importlib.util.spec_from_file_location(name, folder / "__init__.py")
    module = importlib.util.module_from_spec(spec)
    monkeypatch.setitem(sys.modules, name, module)
    spec.loader.exec_module(module)
    assert set(module.NODE_CLASS_MAPPINGS) == set(module.NODE_DISPLAY_NAME_MAPPINGS)
    return module.NODE_CLASS_MAPPINGS


def run(node, **given):
    """What the node returns, called by the names of its inputs, with the defaults of its widgets."""
    inputs = node.INPUT_TYPES()
    kwargs = {}
    for name, (kind, *more) in {**inputs["required"], **inputs["optional"]}.items():
        default = kind[0] if isinstance(kind, list) else (more[0] if more else {}).get("default")
        kwargs[name] = given.get(name, default)
    outputs = getattr(node(), node.FUNCTION)(**kwargs)
    assert len(node.RETURN_TYPES) == len(node.RETURN_NAMES) == len(node.OUTPUT_IS_LIST) == len(outputs)
    return outputs


def test_the_score_node_scores_a_batch(nodes, service):
    """Each picture of BHWC as it is by itself."""
    scores, text = run(nodes["ScoregateScore"], images=IMAGES, prompt="a cat", url=service)
    direct = Reward(logit=False, base_url=service)
    expected = direct(IMAGES.permute(0, 3, 1, 2), ["a cat"] * 5)
    direct.close()

    assert expected == scores
    assert f"0: {scores[0]:.4f}" == text.splitlines()[0]


def test_the_filter_gives_the_pictures_that_pass_best_first(nodes, here):
    """No more than were asked for."""
    scores, _ = run(nodes["ScoregateScore"], images=IMAGES, prompt="a cat")
    order = sorted(range(5), key=lambda index: -scores[index])
    images, kept, _ = run(
        nodes["ScoregateFilter"], images=IMAGES, prompt="a cat", threshold=scores[order[2]], count=9
    )
    [one], [best], _ = run(nodes["ScoregateFilter"], images=IMAGES, prompt="a cat", threshold=-1.0, count=1)

    assert (images == IMAGES[order[:3]]).all()
    assert [scores[index] for index in order[:3]] == kept
    assert (one == IMAGES[order[0]]).all()
    assert scores[order[0]] == best


def test_the_workflow_stops_where_no_picture_passes(nodes, here, monkeypatch, capsys):
    """ComfyUI has no empty batch; its own exception ends a workflow without a red box."""

    class InterruptProcessingException(BaseException): ...

    management = ModuleType("comfy.model_management")
    management.InterruptProcessingException = InterruptProcessingException

    with pytest.raises(ScoregateError, match="no picture reaches 1"):
        run(nodes["ScoregateFilter"], images=IMAGES, prompt="a cat", threshold=1.0)
    monkeypatch.setitem(sys.modules, "comfy", ModuleType("comfy"))
    monkeypatch.setitem(sys.modules, "comfy.model_management", management)
    with pytest.raises(InterruptProcessingException):
        run(nodes["ScoregateFilter"], images=IMAGES, prompt="a cat", threshold=1.0)
    assert "no picture reaches 1" in capsys.readouterr().out


def test_the_filter_passes_what_a_policy_accepts(nodes, here):
    """In the order of the batch, with the reasons; a picture that cannot be read is rejected."""
    images = IMAGES.clone()
    images[1, 0, 0, 0] = torch.nan
    scores, _ = run(nodes["ScoregateScore"], images=IMAGES, prompt="a cat")
    good = [index for index in (0, 2, 3, 4) if scores[index] >= 0.5]
    kept, passed, text = run(
        nodes["ScoregateFilter"], images=images, prompt="a cat", policy="show", count=9, threshold=1.0
    )

    assert 0 < len(good) < 4
    assert (kept == IMAGES[good]).all()
    assert [scores[index] for index in good] == passed
    assert f"{good[0]}: accept: vqascore {float(f'{passed[0]:.6g}')} >= 0.5 and clipscore " in text
    assert "1: reject: unreadable: image_undecodable" in text.splitlines()


def test_a_policy_chooses_the_best_of_more_pictures_than_may_pass(nodes, here):
    """By its rank_by."""
    scores, _ = run(nodes["ScoregateScore"], images=IMAGES, prompt="a cat")
    [one], [best], text = run(nodes["ScoregateFilter"], images=IMAGES, prompt="a cat", policy="show", count=1)

    assert max(scores) == best
    assert (one == IMAGES[scores.index(best)]).all()
    assert "reject: group: 1 accepted before it" in text


@pytest.mark.parametrize("fallback", ["reject", "accept"])
def test_without_a_service_the_fallback_decides(nodes, fallback):
    """A picture has no score then, and one that cannot be encoded does not pass."""

    class Hasty(nodes["ScoregateFilter"]):
        timeout_s = 0.5

    given = {"prompt": "a cat", "policy": "show", "count": 9, "fallback": fallback, "url": url(free_port(0))}
    images = IMAGES.clone()
    images[1, 0, 0, 0] = torch.nan
    if fallback == "reject":
        with pytest.raises(ScoregateError, match="no picture is accepted\n0: reject: fallback: "):
            run(Hasty, images=images, **given)
        return
    kept, scores, text = run(Hasty, images=images, **given)

    assert (kept == IMAGES[[0, 2, 3, 4]]).all()
    assert all(map(isnan, scores))
    assert "1: reject: fallback: unreadable: bad_image: " in text


def test_a_picture_without_a_score_never_passes(nodes, here):
    """It is an error, or blocked on request; where none has one, it is an error in any case."""
    images = IMAGES.clone()
    images[1, 0, 0, 0] = torch.nan
    kept, scores, text = run(
        nodes["ScoregateFilter"], images=images, prompt="a cat", threshold=-1.0, count=9, on_error="block"
    )

    assert 4 == len(kept) == len(scores)
    assert "1: bad_image" in text.splitlines()
    for node in nodes.values():
        with pytest.raises(NoScoreError):
            run(node, images=images, prompt="a cat")
    with pytest.raises(NoScoreError):
        run(nodes["ScoregateFilter"], images=images[1:2], prompt="a cat", on_error="block")
