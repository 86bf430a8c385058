"""Bodies of `POST /compare`: items, rubrics of the caller, and what is refused."""

import json
import tomllib

import pytest

from tests.support.pictures import b64, png
from tests.support.refusals import JSON, SECRET, refused

pytestmark = pytest.mark.anyio

FILES = [png(colour) for colour in ("red", "blue", "green")]
PICTURES = [b64(file) for file in FILES]
OWN = """
score = "better"
[[calls]]
instructions = "Is picture {candidate} better than picture {rival} as {prompt}?"
images = ["candidate", "rival"]
[calls.outputs.better]
kind = "yes_no"
"""


async def compare(client, **fields):
    body = {"prompt": f"a {SECRET}", "images": PICTURES, **fields}
    return await client.post("/compare", json=body)


@pytest.mark.shared
async def test_items_may_bring_the_pictures(serve):
    """With ids, which come back, and a prompt that is that of all."""
    items = [{"id": f"n{n}", "image": each, "prompt": f"a {SECRET}"} for n, each in enumerate(PICTURES)]
    files = {f"f{n}": (f"{n}.png", file) for n, file in enumerate(FILES)}
    parts = {"prompt": f"a {SECRET}", "items": [{"image": {"part": name}} for name in files]}
    async with serve() as client:
        plain = (await compare(client)).json()
        answer = (await client.post("/compare", json={"items": items})).json()
        null = await compare(client, rubric=None, metric=None, noise=None, source=None, items=None)
        form = (await client.post("/compare", data={"request": json.dumps(parts)}, files=files)).json()
        other = await client.post("/compare", json={"items": [*items, {**items[0], "prompt": "other"}]})

    assert ["n0", "n1", "n2"] == answer["ids"]
    assert plain["pairs"] == answer["pairs"] == form["pairs"] == null.json()["pairs"]
    assert "ids" not in form
    assert "one prompt" in refused(other, 422, "invalid")["detail"]


async def test_a_rubric_may_be_the_callers_where_the_settings_allow_it(serve, fakes):
    """With other words and another scale; elsewhere it is refused."""
    own = tomllib.loads(OWN)
    async with serve(judge={"allow_inline": True}) as client:
        answer = await compare(client, rubric={**own, "read": "expected"}, explain=True)
        wrong = await compare(client, rubric={**own, "score": "better +"})
        pointwise = await compare(client, rubric="wise")
    async with serve() as client:
        off = await compare(client, rubric=own)

    assert 200 == answer.status_code, answer.text
    assert f"Is picture 1 better than picture 2 as a {SECRET}?" in fakes["vqa"].calls[0].question
    for pair in answer.json()["pairs"]:
        of_a, of_b = (each["score"] for each in pair["details"]["orders"])
        sides = ["a" if of_a > 2 / 3 else "b" if of_a < 1 / 3 else "tie"]
        sides += ["b" if of_b > 2 / 3 else "a" if of_b < 1 / 3 else "tie"]
        assert (len(set(sides)) == 1) is pair["orders_agree"]
        assert (sides[0] if sides[0] == sides[1] else "tie") == pair["winner"]
    for each in (wrong, pointwise, off):
        assert ["/rubric"] == [fault["pointer"] for fault in refused(each, 422, "invalid")["errors"]]
    assert "preference" in pointwise.json()["detail"]


def body(**fields):
    return {"prompt": f"a red {SECRET}", "images": PICTURES[:2], **fields}


PLACES = [
    (body(images=PICTURES[:1]), "/images"),
    (body(images=[PICTURES[0]] * 33), "/images"),
    (body(images=None, items=[{"image": PICTURES[0]}]), "/items"),
    ({"images": PICTURES}, "/prompt"),
    ({"prompt": SECRET}, ""),
    (body(items=[{"image": each} for each in PICTURES]), ""),
    (body(metric="vqascore", rubric="preference"), ""),
    (body(rubric=5), "/rubric"),
    (body(rubric="none"), "/rubric"),
    (body(rubric="preference", options={"judge": {"rubric": "preference"}}), "/rubric"),
    (body(rubric="preference", noise=0.1), "/noise"),
    (body(rubric="preference", images=[PICTURES[0], PICTURES[:2]]), "/images/1"),
    (body(noise=-1), "/noise"),
    (body(schedule="some"), "/schedule"),
    (body(schedule={"kind": "swiss"}), "/schedule/pairs_per_image"),
    (body(schedule={"kind": "all", "pairs_per_image": 1}), "/schedule/kind"),
    (body(schedule={"kind": "swiss", "pairs_per_image": 0}), "/schedule/pairs_per_image"),
    (body(schedule=[]), "/schedule"),
    (body(top_k=1), "/top_k"),
]


@pytest.mark.shared
@pytest.mark.parametrize(("wrong", "pointer"), PLACES, ids=[f"{n} {p}" for n, (_, p) in enumerate(PLACES)])
async def test_what_is_not_allowed_is_invalid_and_its_place_is_named(serve, fakes, wrong, pointer):
    """422, before any picture is looked at."""
    wrong = {name: value for name, value in wrong.items() if value is not None}
    async with serve() as client:
        answer = await client.post("/compare", content=json.dumps(wrong), headers=JSON)

    assert [pointer] == [fault["pointer"] for fault in refused(answer, 422, "invalid")["errors"]]
    assert [] == fakes["vqa"].calls


@pytest.mark.shared
async def test_a_metric_that_is_not_served_is_named(serve):
    """At its place."""
    async with serve() as client:
        answer = await compare(client, metric="pickscore")

    assert ["/metric"] == [fault["pointer"] for fault in refused(answer, 422, "unknown_metric")["errors"]]
