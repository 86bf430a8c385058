"""Several images per item, where some are animations, which are decoded in a process."""

import json

import pytest

from models.images import frame_stack
from tests.app.web.test_frames import STILLS, body, details, error, scored, seen
from tests.support.fake_service import key_table
from tests.support.fakes import FakeVideoAlign
from tests.support.films import COLOURS, declared_mp4, film, many_frames, mp4
from tests.support.pictures import b64, item, png

pytestmark = pytest.mark.anyio


@pytest.mark.parametrize("format", ["GIF", "WEBP"])
async def test_an_animation_counts_as_its_frames_where_the_request_says_what_becomes_of_them(
    serve, fakes, format
):
    """Otherwise as its first frame, as ever."""
    moving = b64(film(format))
    async with serve() as client:
        first = await scored(client, moving)
        mean = await scored(client, moving, frames="mean")
        grid = await scored(client, moving, frames="grid", samples=2)

    red, lime, blue = (255, 0, 0), (0, 255, 0), (0, 0, 255)
    asked = [((16, 16), red), *(((16, 16), colour) for colour in (red, lime, blue)), ((32, 32), red)]
    assert sorted(asked) == sorted(seen(fakes))
    assert "frames" not in details(first)
    assert (3, 3) == (details(mean)["frames_used"], len(details(mean)["frames"]))
    assert (2, 3) == (details(grid)["frames_used"], details(grid)["frames_given"])


async def test_metrics_of_one_request_may_treat_frames_differently(serve, fakes):
    """One looks at the first frame of an animation, the other at all."""
    asked = body(b64(film()), ("vqascore", "clipscore"), frames="mean")
    async with serve() as client:
        [result] = (await client.post("/score", json=asked)).json()["results"]

    assert 3 == len(details(result)["frames"])
    assert "frames" not in result["details"]["clipscore"]


@pytest.mark.shared
async def test_pictures_and_animations_of_an_item_are_one_row_of_frames(serve):
    """In their order; errors name a frame by its place."""
    moving, still = b64(film()), b64(STILLS[3])
    broken = b64(png(size=(40, 40))[:-30])
    async with serve() as client:
        good = await scored(client, [still, moving, still], frames="mean")
        bad = await scored(client, [still, moving, broken], frames="mean")
        in_grid = await scored(client, [still, moving, broken], frames="grid")
        not_text = await scored(client, [still, "!", moving], frames="grid")

    assert 5 == details(good)["frames_given"]
    assert bad["errors"]["vqascore"]["detail"].startswith("frame 2: ")
    assert error(in_grid)["detail"].startswith("frame 2: ")
    assert ("not_base64", True) == (
        error(not_text)["code"],
        error(not_text)["detail"].startswith("frame 1: "),
    )


@pytest.mark.shared
async def test_more_frames_than_an_item_may_have_must_be_sampled(serve):
    """An animation may hold more; the error says how."""
    many = b64(many_frames(200))
    async with serve() as client:
        refused = await scored(client, many, frames="mean")
        taken = await scored(client, many, frames="mean", samples=4)

    assert "image_too_large" == error(refused)["code"]
    assert "200 frames; at most 128" in error(refused)["detail"]
    assert "options.vqascore.samples" in error(refused)["detail"]
    assert (4, 200) == (details(taken)["frames_used"], details(taken)["frames_given"])


@pytest.mark.shared
async def test_an_item_may_have_its_own_way_with_frames(serve):
    """Over that of the request."""
    asked = body([b64(data) for data in STILLS[:4]], frames="grid")
    asked["items"].append(item(image=b64(film()), options={"vqascore": {"frames": "mean", "samples": 2}}))
    async with serve() as client:
        first, second = (await client.post("/score", json=asked)).json()["results"]

    assert 2 == details(first)["side"]
    assert (2, 3) == (details(second)["frames_used"], details(second)["frames_given"])


async def test_a_video_counts_as_its_frames_without_being_told(serve, fakes):
    """Sixteen at most, spread over the clip; a rate or a number sets others."""
    pytest.importorskip("av", reason="the extra `video` is not installed")
    video = b64(mp4(COLOURS * 4))
    async with serve() as client:
        plain = await scored(client, video)
        in_grid = await scored(client, video, frames="grid", samples=4)
        [result] = (await client.post("/score", json={**body(video), "fps": 2})).json()["results"]
        ranked = await client.post(
            "/rank", json={"prompt": "a red square", "images": [video, video], "start": 1, "fps": 1}
        )

    assert (16, 24) == (details(plain)["frames_used"], details(plain)["frames_given"])
    assert [2, 3, 5, 6] == [each["frame"] for each in details(plain)["frames"]][1:5]
    assert (4, 24) == (details(in_grid)["frames_used"], details(in_grid)["frames_given"])
    assert (128, 96) in [size for size, _ in seen(fakes)]
    assert [0, 0.5, 1, 1.5, 2, 2.5] == [each["time_s"] for each in details(result)["frames"]]
    assert 200 == ranked.status_code, ranked.text


async def test_a_video_is_refused_where_the_operator_does_not_list_it(serve):
    """As any format."""
    async with serve(images={"formats": ["PNG"]}) as client:
        unlisted = await scored(client, b64(declared_mp4(64, 48, 3)))

    assert "image_undecodable" == error(unlisted)["code"]


@pytest.mark.shared
async def test_a_video_is_no_reference(serve):
    """Only an item's image may be one."""
    asked = body(b64(STILLS[0]), metrics=("judge",)) | {"options": {"judge": {"rubric": "editing"}}}
    asked["items"][0]["source"] = b64(declared_mp4(64, 48, 3))
    async with serve() as client:
        answer = (await client.post("/score", json=asked)).json()

    assert "a video in place of a still picture" in answer["results"][0]["errors"]["judge"]["detail"], answer


async def test_frames_of_a_video_are_scored_together(serve, fakes):
    """At a rate, as they are decoded, beside a metric that scores each."""
    pytest.importorskip("av", reason="the extra `video` is not installed")
    fakes["videoalign"] = FakeVideoAlign()
    models = {name: {"family": "fake", "role": name} for name in fakes}
    asked = {**body(b64(mp4(COLOURS)), ("videoalign", "videoalign.motion", "vqascore")), "fps": 4}
    async with serve(
        models=models,
        metrics={"videoalign": {"model": "videoalign"}},
        images={"formats": ["MP4"]},
    ) as client:
        [result] = (await client.post("/score", json=asked)).json()["results"]

    [call] = fakes["videoalign"].calls
    assert (3, {(64, 48)}) == (len(call.frames), {frame.size for frame in call.frames})
    assert 3 == result["details"]["videoalign"]["frames_used"] == details(result)["frames_used"]
    assert result["scores"]["videoalign.motion"] == result["details"]["videoalign"]["motion"]


SHARED = [  # items of one film: four of its six frames; the first; the first two, as a grid or their mean
    {"metrics": ["vqascore"], "options": {"vqascore": {"samples": 4}}},
    {"metrics": ["clipscore"]},
    {"metrics": ["vqascore", "clipscore"], "options": {"vqascore": {"frames": "grid"}}, "end": 0.2},
]


async def test_items_of_different_metrics_share_a_film_as_if_each_had_its_own(serve, tmp_path, monkeypatch):
    """Each pair of item and metric is charged once; the frames of all are decoded together, and no others."""
    moving, kept, decode = film(colours=COLOURS), list[list[int]](), frame_stack.decode_film
    monkeypatch.setattr(
        frame_stack, "decode_film", lambda file, header: kept.append([*header.kept]) or decode(file, header)
    )
    (tmp_path / "keys").write_text(key_table("fits", "fits", "quota = 4") + key_table("other", "other"))
    keys = {"api_keys_file": tmp_path / "keys"}

    async def sent(client, items, key):
        request = json.dumps({"items": items, "explain": True})
        form = {"data": {"request": request}, "files": {"film": ("film", moving)}}
        return await client.post("/score", **form, headers={"X-API-Key": key})

    items = [{"prompt": "a", "image": {"part": "film"}, **own} for own in SHARED]
    async with serve(server=keys) as client:
        together, again = [await sent(client, items, "fits") for _ in range(2)]
    decoded = [*kept]
    async with serve(server=keys) as client:
        alone = [(await sent(client, [one], "other")).json()["results"][0] for one in items]

    found = together.json()
    for result, single in zip(found["results"], alone, strict=True):
        assert (single["scores"], single["details"]) == (result["scores"], result["details"])
    assert {(0, 1, 2, 3, 5)} == set(map(tuple, decoded))
    assert [{"code": "frames_ignored", "item": 1, "metric": "clipscore"}] == found["warning_codes"]
    assert (200, 429) == (together.status_code, again.status_code)
