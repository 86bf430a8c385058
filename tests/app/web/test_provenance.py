"""The provenance of scores: what they were computed with."""

import pytest

from models.core.contract import ARITHMETIC
from service import __version__
from service.metrics.common.contract import Score
from service.web.endpoints import question_sets
from tests.support.pictures import b64, item, png

pytestmark = pytest.mark.anyio


@pytest.mark.shared
async def test_a_response_says_what_its_scores_were_computed_with(serve):
    """Equal parts stand in `GET /models`; options have their defaults."""
    async with serve() as client:
        listed = (await client.get("/models")).json()
        body = {"items": [item()], "options": {"vqascore": {"output": "logit"}}, "orient": "exif"}
        found = (await client.post("/score", json=body)).json()["provenance"]

    [model] = [each for each in listed["models"] if each["name"] == "vqa"]
    assert {"vqa": {name: model[name] for name in ("recipe", "dtype", "device")}} == found["models"]
    assert __version__ == found["service"]["version"]
    assert (listed["service"], listed["libraries"]) == (found["service"], found["libraries"])
    assert "logit" == found["options"]["vqascore"]["output"]
    assert "mean" == found["options"]["vqascore"]["frames"]
    assert {"arithmetic": ARITHMETIC, "orient": "exif"} == found["preprocessing"]
    assert {"arithmetic": ARITHMETIC, "orient": "as_stored"} == listed["preprocessing"]


@pytest.mark.shared
async def test_an_item_has_the_id_of_its_question_set_without_explain(serve):
    """The id is that of the details; a metric without questions has none."""
    async with serve() as client:
        body = {"items": [item(), item(image=[b64(png())] * 2)], "metrics": ["dsg", "clipscore"]}
        plain = (await client.post("/score", json=body)).json()["results"]
        explained = (await client.post("/score", json={**body, "explain": True})).json()["results"]

    id = explained[0]["details"]["dsg"]["question_set"]
    assert [{"dsg": id}] * 2 == [each["question_sets"] for each in plain]


@pytest.mark.shared
async def test_an_item_with_options_of_its_own_shows_them(serve):
    """Over those of the request; another item has none."""
    own = {"options": {"vqascore": {"output": "logit"}}}
    async with serve() as client:
        answer = (await client.post("/score", json={"items": [item(), item(**own)]})).json()

    assert "options" not in answer["results"][0]
    assert "logit" == answer["results"][1]["options"]["vqascore"]["output"]
    assert "probability" == answer["provenance"]["options"]["vqascore"]["output"]


@pytest.mark.shared
async def test_an_item_with_an_orientation_of_its_own_shows_it(serve):
    """Beside its options; the provenance has that of the request."""
    items = [item(orient="exif"), item(orient="as_stored"), item()]
    async with serve() as client:
        stored = (await client.post("/score", json={"items": items})).json()
        turned = (await client.post("/score", json={"items": items, "orient": "exif"})).json()

    assert ["exif", None, None] == [each.get("orient") for each in stored["results"]]
    assert [None, "as_stored", None] == [each.get("orient") for each in turned["results"]]
    assert "exif" == turned["provenance"]["preprocessing"]["orient"]


@pytest.mark.shared
async def test_a_ranking_has_the_provenance_of_its_scores(serve):
    """That of `/score` by both metrics, and the ids of the question sets of each picture."""
    options = {"dsg": {"answers": "soft"}}
    asked = {"prompt": "a red dog", "images": [b64(png()), b64(png("blue"))], "options": options}
    cascade = {"metric": "clipscore", "keep": 1}
    async with serve() as client:
        ranked = await client.post(
            "/rank", json={**asked, "metric": "dsg", "cascade": cascade, "orient": "exif"}
        )
        scored = await client.post(
            "/score", json={**asked, "metrics": ["dsg", "clipscore"], "orient": "exif"}
        )

    ranking, scores = ranked.json(), scored.json()
    assert scores["provenance"] == ranking["provenance"]
    assert "soft" == ranking["provenance"]["options"]["dsg"]["answers"]
    sets = [each.get("question_sets") for each in ranking["ranking"]]
    assert [scores["results"][0]["question_sets"], None] == sets


async def test_the_parts_of_a_composite_have_sets_under_their_own_names():
    """`NAME.PART`, and through frames and grids."""
    parts = {"dsg": {"details": {"question_set": "a"}}, "clipscore": {"details": {"cosine": 1}}}
    framed = {"frames": [{"question_set": "b"}, {"question_set": "b"}]}

    assert {"reward.dsg": "a"} == question_sets({"reward": Score(0.5, {"parts": parts})})
    assert {"dsg": "b"} == question_sets({"dsg": Score(0.5, framed)})
    assert {"tifa": "c"} == question_sets({"tifa": Score(0.5, {"grid": {"question_set": "c"}, "side": 2})})
    assert {} == question_sets({"mine": Score(0.5, None)})


@pytest.mark.shared
async def test_a_metric_with_question_sets_has_their_style(serve):
    """In `GET /models`; a client that pins sets finds the metrics that take them."""
    async with serve() as client:
        listed = (await client.get("/models")).json()["metrics"]

    assert ("dsg", "tifa") == (listed["dsg"]["style"], listed["soft_tifa"]["style"])
    assert "style" not in listed["vqascore"]
