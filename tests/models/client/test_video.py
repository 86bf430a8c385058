"""Videos in every form that diffusers' pipelines return."""

from types import SimpleNamespace

import numpy as np
import PIL.Image
import pytest
import torch

from models.images.formats.decode import decode
from scoregate import Frames, Item, TimeSpan
from scoregate.errors import BadImageError
from scoregate.items import Files

PIXELS = np.random.default_rng(0).integers(0, 255, (5, 6, 7, 3), np.uint8)  # of five frames
FLOATS = PIXELS.astype(np.float32) / 255
PICTURES = [PIL.Image.fromarray(each) for each in PIXELS]
TENSOR = torch.from_numpy(FLOATS).permute(0, 3, 1, 2)
FORMS = {
    "frames[0] as pil": Frames(PICTURES),
    "frames as pil": Frames([PICTURES]),
    "the output": SimpleNamespace(frames=[PICTURES]),
    "frames[0] as np": Frames(FLOATS),
    "frames as np": FLOATS[None],
    "a list of arrays of frames": Frames([FLOATS]),
    "frames[0] as pt": Frames(TENSOR),
    "frames as pt": TENSOR[None],
}


@pytest.mark.parametrize("video", FORMS.values(), ids=FORMS)
def test_the_service_gets_every_frame_of_a_video(video):
    """In order, as its very pixels; a video of several items is sent once."""
    files = Files()
    items = [
        files.item(Item(prompt=prompt, image=video, span=TimeSpan(fps=2)), "/items/0")
        for prompt in ("a", "b")
    ]

    assert items[0]["image"] == items[1]["image"]
    assert 2 == items[0]["fps"]
    sent = [np.asarray(decode(files.parts[frame["part"]])) for frame in items[0]["image"]]
    assert np.array_equal(PIXELS, sent)
    assert files.file_of(video) == files.parts["image0"]


@pytest.mark.parametrize("video", [PICTURES[:1] * 65, PIXELS[[0] * 65], [PICTURES[:1] * 65]])
def test_of_a_long_video_frames_are_spread(video):
    """As many as the service takes of a file of it; of one with 64 frames all are sent."""
    assert 16 == len(Files().add(Frames(video), "/image"))
    assert 64 == len(Files().add(Frames(PICTURES[:1] * 64), "/image"))


@pytest.mark.parametrize(("of_all", "own", "sent"), [(0, 20, 20), (20, 0, 20), (30, 20, 30), (4, 0, 16)])
def test_of_a_long_video_as_many_frames_are_sent_as_a_metric_samples(of_all, own, sent):
    """By the request's options or the item's own; fewer are sampled by the service."""
    shared, options = ({"vqascore": {"samples": each} if each else {}} for each in (of_all, own))
    item = Item(prompt="a", image=Frames(PICTURES[:1] * 81), options=options)
    wire = Files().item(item, "/items/0", shared)

    assert sent == len(wire["image"])


@pytest.mark.parametrize("batch", [Frames([PICTURES, PICTURES]), np.stack([FLOATS, FLOATS])])
def test_a_batch_of_videos_is_no_video(batch):
    """The error says where it is, and what to give."""
    with pytest.raises(BadImageError, match=r"^/items/3/image: a batch of 2 videos; .*frames\[0\]") as caught:
        Files().item(Item(prompt="a", image=batch), "/items/3")

    assert "/items/3/image" == caught.value.errors[0]["pointer"]
