"""`POST /compare`: pictures of one prompt in pairs, by a judge that sees two or by scores."""

import asyncio
import json
import tomllib
from itertools import combinations
from math import isfinite, log

import pytest

from models.core.calls import LabelCall
from models.core.outcomes import Choices
from models.images import image
from service.core.errors import LaneFull
from service.scoring.engine import Engine
from tests.support.app import decoded, service_of
from tests.support.handles import until
from tests.support.leaps import out_of_time
from tests.support.pictures import b64, png
from tests.support.refusals import SECRET, refused

pytestmark = pytest.mark.anyio

COLOURS = ("red", "blue", "green", "white", "black", "yellow", "lime", "pink", "grey")
FILES = [png(colour) for colour in COLOURS]
PICTURES = [b64(file) for file in FILES]
ORDER = [3, 1, 4, 0, 5, 2, 6, 8, 7]  # the judge's, the best first
TIMEOUT_MS = 30_000


async def compare(client, images=PICTURES, **fields):
    return await client.post("/compare", json={"prompt": f"a {SECRET}", "images": images, **fields})


@pytest.fixture
def judges(fakes):
    """Has the model's labels say what *verdict* returns for the places of candidate and rival in `ORDER`."""

    def judge(verdict):
        model, places = fakes["vqa"], {}
        for place, index in enumerate(ORDER):
            places[image.Image(FILES[index]).digest] = place

        def answer(call):
            if not isinstance(call, LabelCall):
                return type(model).answer(model, call)
            rival = next(each for each in reversed(call.before) if not isinstance(each, str))
            says = verdict(places[call.image.digest], places[rival.digest])
            shares = {"candidate": (0.9, 0.05, 0.05), "tie": (0.05, 0.9, 0.05), "rival": (0.05, 0.05, 0.9)}
            return Choices(tuple((log(share),) for share in shares[says]))

        model.answer = answer

    return judge


def fair(candidate, rival):
    """Prefers what is first in `ORDER`."""
    return "candidate" if candidate < rival else "rival"


async def test_a_judge_of_pairs_orders_all_pictures(serve, fakes, judges):
    """With the names of the contract; each pair is judged in both orders."""
    judges(fair)
    async with serve() as client:
        answer = (await compare(client, rubric="preference")).json()

    names = {"request_id", "metric", "ranking", "win_rates", "strengths", "pairs", "failed"}
    assert names | {"models", "provenance", "timings_ms"} == answer.keys()
    assert ORDER == answer["ranking"]
    assert [(8 - ORDER.index(each)) / 8 for each in range(9)] == answer["win_rates"]
    assert list(combinations(range(9), 2)) == [(pair["a"], pair["b"]) for pair in answer["pairs"]]
    for pair in answer["pairs"]:
        ahead = ORDER.index(pair["a"]) < ORDER.index(pair["b"])
        assert {"a", "b", "winner", "orders_agree"} == pair.keys()
        assert ("a" if ahead else "b", True) == (pair["winner"], pair["orders_agree"])
    assert [] == answer["failed"]
    assert all({"value", "stderr"} == each.keys() for each in answer["strengths"])
    assert all(isfinite(each["value"]) and each["stderr"] > 0 for each in answer["strengths"])
    assert 72 == len(fakes["vqa"].calls)
    [(model, label)] = answer["models"].items()
    assert ("vqa", "fake-vqa@1") == (model, label)
    assert "preference@sha256:" in answer["provenance"]["options"][answer["metric"]]["rubric"]


async def test_36_pairs_in_both_orders_decode_nine_pictures(serve):
    """Each is opened once, for all pairs."""
    async with serve() as client:
        answer = (await compare(client, rubric="preference")).json()
        times = decoded(client)

    assert 36 == len(answer["pairs"])
    assert 9 == len(FILES) == times


async def test_a_judge_that_prefers_a_position_decides_nothing(serve, judges):
    """Every pair is a tie, and the orders disagree; so all are as strong, in the order of the request."""
    judges(lambda candidate, rival: "candidate")
    async with serve() as client:
        answer = (await compare(client, rubric="preference")).json()

    assert {("tie", False)} == {(pair["winner"], pair["orders_agree"]) for pair in answer["pairs"]}
    assert [0.5] * 9 == answer["win_rates"]
    assert [0] * 9 == [round(each["value"], 9) for each in answer["strengths"]]
    assert [*range(9)] == answer["ranking"]


async def test_who_wins_has_to_win_in_both_orders(serve, judges):
    """A tie in one of them is a tie."""
    judges(lambda candidate, rival: "candidate" if candidate < rival else "tie")
    async with serve() as client:
        answer = (await compare(client, PICTURES[:2], rubric="preference")).json()

    [pair] = answer["pairs"]
    assert ("tie", False) == (pair["winner"], pair["orders_agree"])


async def test_details_have_both_orders(serve, judges):
    """Each with its candidate, its score, and what the judge details."""
    judges(fair)
    async with serve() as client:
        answer = (await compare(client, PICTURES[:2], rubric="preference", explain=True)).json()

    [pair] = answer["pairs"]
    orders = pair["details"]["orders"]
    assert [0, 1] == [each["candidate"] for each in orders]
    assert [-0.85, 0.85] == pytest.approx([each["score"] for each in orders])
    assert all(
        0.9 == pytest.approx(max(each["outputs"]["winner"]["probabilities"].values())) for each in orders
    )


async def test_a_failed_pair_is_named_and_is_nobodys_half_win(serve, fakes, judges):
    """The win rates are those of the other pairs."""
    judges(fair)
    digests = {image.Image(FILES[index]).digest for index in (3, 1)}
    answer = fakes["vqa"].answer

    def failing(call):
        if isinstance(call, LabelCall) and digests == {each.digest for each in call.images}:
            return Choices(((float("-inf"),),) * 3)
        return answer(call)

    fakes["vqa"].answer = failing
    async with serve() as client:
        answer = (await compare(client, rubric="preference")).json()

    [failed] = answer["failed"]
    assert (1, 3, "model_fault") == (failed["a"], failed["b"], failed["error"]["code"])
    assert {"code", "detail"} == failed["error"].keys()
    assert 35 == len(answer["pairs"])
    assert (1, 3) not in [(pair["a"], pair["b"]) for pair in answer["pairs"]]
    assert (7 / 7, 7 / 7) == (answer["win_rates"][3], answer["win_rates"][1])
    assert "NaN" not in json.dumps(answer)


class Full(Engine):
    """An engine that refuses one pair, in both orders."""

    async def score_metric(self, name, shown, *arguments):
        if {shown.image.digest, shown.rival.digest} > {image.Image(FILES[1]).digest}:
            return LaneFull("full", retry_after_s=1.5)
        return await super().score_metric(name, shown, *arguments)


@pytest.mark.parametrize("parts", [{"engine": Full}])
async def test_a_refused_pair_counts_as_a_refused_metric(serve, judges):
    """Once, though both orders of it were refused; the other pairs have verdicts."""
    judges(fair)
    async with serve() as client:
        answer = (await compare(client, PICTURES[:3], rubric="preference")).json()
        metrics = (await client.get("/metrics")).text

    assert (1, {"lane_full"}) == (len(answer["pairs"]), {each["error"]["code"] for each in answer["failed"]})
    assert 'scoregate_rejections_total{reason="lane_full"} 1.0' in metrics


@pytest.mark.shared
@pytest.mark.parametrize("how", [{"rubric": "preference"}, {}], ids=["judge", "scores"])
async def test_a_broken_picture_has_no_number_and_harms_no_other(serve, how):
    """Each of its pairs fails with the reason and its place; the others are as without it."""
    images = [PICTURES[0], "!", *PICTURES[1:4]]
    async with serve() as client:
        whole = (await compare(client, [PICTURES[0], *PICTURES[1:4]], **how)).json()
        answer = (await compare(client, images, **how)).json()

    others = [0, 2, 3, 4]
    assert [(0, 1), (1, 2), (1, 3), (1, 4)] == [(pair["a"], pair["b"]) for pair in answer["failed"]]
    assert {"not_base64"} == {pair["error"]["code"] for pair in answer["failed"]}
    assert all(pair["error"]["detail"].startswith("/images/1") for pair in answer["failed"])
    assert answer["win_rates"][1] is None
    assert answer["strengths"][1] is None
    assert whole["win_rates"] == [answer["win_rates"][each] for each in others]
    assert [others[each] for each in whole["ranking"]] == answer["ranking"]


@pytest.mark.shared
async def test_if_all_pictures_are_broken_there_is_no_ranking(serve):
    """It is no error of the request."""
    async with serve() as client:
        answer = await compare(client, ["!", "!"], rubric="preference")

    assert 200 == answer.status_code
    assert ([], [None, None]) == (answer.json()["ranking"], answer.json()["win_rates"])


async def test_by_scores_a_difference_within_the_noise_is_a_tie(serve):
    """Each picture is scored once; the noise is at least that of the model's arithmetic."""
    async with serve() as client:
        body = {"prompt": f"a {SECRET}", "images": PICTURES, "metrics": ["vqascore"]}
        results = (await client.post("/score", json=body)).json()["results"]
        found = [each["scores"]["vqascore"] for each in results]
        exact = (await compare(client, explain=True)).json()
        noise = sorted(abs(a - b) for a, b in combinations(found, 2))[17]
        noisy = (await compare(client, noise=noise, explain=True)).json()
        same = (await compare(client, [PICTURES[0]] * 2, noise=0)).json()

    assert sorted(range(9), key=lambda index: -found[index]) == exact["ranking"]
    for pair in exact["pairs"]:
        difference = found[pair["a"]] - found[pair["b"]]
        assert difference == pair["details"]["difference"]
        assert 2**-24 * max(found[pair["a"]], found[pair["b"]]) == pair["details"]["noise"]
        assert ("a" if difference > 0 else "b", True) == (pair["winner"], pair["orders_agree"])
    assert {noise} == {pair["details"]["noise"] for pair in noisy["pairs"]}
    assert 18 == [pair["winner"] for pair in noisy["pairs"]].count("tie")
    assert ["tie"] == [pair["winner"] for pair in same["pairs"]]


@pytest.mark.parametrize("kind", ["swiss", "anchor"])
async def test_a_schedule_has_so_many_pairs_for_each_picture(serve, fakes, judges, kind):
    """`pairs_per_image` times the pictures, in both orders; or all pairs."""
    judges(fair)
    async with serve() as client:
        schedules = [{"kind": kind, "pairs_per_image": k} for k in (2, 31)]
        some, every = [
            (await compare(client, rubric="preference", schedule=each)).json() for each in schedules
        ]

    assert 18 == len(some["pairs"]) == len({(pair["a"], pair["b"]) for pair in some["pairs"]})
    assert 36 == len(every["pairs"])
    assert sorted(some["ranking"]) == [*range(9)]
    assert ORDER == every["ranking"]


async def test_pairs_of_requests_share_batches(serve, fakes, judges):
    """Of two groups that arrive together."""
    judges(fair)
    async with serve() as client:
        handle = service_of(client).runtime.handles["vqa"]
        fakes["vqa"].hold.clear()  # the device is busy until the calls of both wait
        body = {"items": [{"image": PICTURES[8], "prompt": "a dog"}], "metrics": ["vqascore"]}
        busy = asyncio.create_task(client.post("/score", json=body))
        await until(lambda: fakes["vqa"].held)
        both = asyncio.gather(*(compare(client, PICTURES[n : n + 4], rubric="preference") for n in (0, 4)))
        await until(lambda: sum(job.prepared is not None for job in handle._jobs.values()) == 1 + 2 * 12)
        fakes["vqa"].hold.set()
        await asyncio.gather(busy, both)

    groups = [{image.Image(file).digest for file in FILES[n : n + 4]} for n in (0, 4)]
    shared = [
        batch
        for batch in fakes["vqa"].batches
        if all(any(call.image.digest in group for call in batch) for group in groups)
    ]
    assert shared


async def test_edits_are_compared_with_their_source(serve, fakes):
    """It is shown first; a rubric without it refuses one, and a rubric with it needs one."""
    async with serve() as client:
        answer = await compare(client, PICTURES[:3], rubric="edit_preference", source=PICTURES[8])
        missing = await compare(client, PICTURES[:3], rubric="edit_preference")
        unused = [
            await compare(client, PICTURES[:3], source=PICTURES[8], **how)
            for how in ({"rubric": "preference"}, {})
        ]
        broken = (await compare(client, PICTURES[:3], rubric="edit_preference", source="!")).json()

    source = image.Image(FILES[8]).digest
    assert 3 == len(answer.json()["pairs"])
    for call in fakes["vqa"].calls:
        shown = [each for each in call.before if not isinstance(each, str)]
        assert (source, 2) == (shown[0].digest, len(shown))
    assert "/source" == refused(missing, 422, "invalid")["errors"][0]["pointer"]
    for each in unused:
        [fault] = refused(each, 422, "invalid")["errors"]
        assert ("/source", "unused_picture") == (fault["pointer"], fault["code"])
    assert all(pair["error"]["detail"].startswith("/source: ") for pair in broken["failed"])
    assert {"not_base64"} == {pair["error"]["code"] for pair in broken["failed"]}
    assert [None] * 3 == broken["win_rates"]


async def test_the_grades_of_any_rubric_are_compared_as_scores(serve):
    """By the metric that grades, whose rubric is an option; one for pairs compares there, too."""
    async with serve() as client:
        graded = (await compare(client, metric="judge", explain=True)).json()
        option = {"judge": {"rubric": "preference"}}
        by_option = (await compare(client, metric="judge", options=option)).json()
        by_name = (await compare(client, rubric="preference")).json()
        alone = await client.post(
            "/score", json={"prompt": "a", "image": PICTURES[0], "metrics": ["judge"], "options": option}
        )

    assert all("difference" in pair["details"] for pair in graded["pairs"])
    assert by_option["pairs"] == by_name["pairs"]
    assert "missing_picture" == alone.json()["results"][0]["errors"]["judge"]["code"]


async def test_the_noise_of_grades_is_that_of_their_samples(serve, fakes):
    """The standard error of the difference, from the samples of both."""
    table = """
score = "grade"
samples = 4
[[calls]]
instructions = "{prompt}?"
[calls.outputs.grade]
range = [0, 100]
"""
    rubric = tomllib.loads(table)
    async with serve(judge={"allow_inline": True}) as client:
        options = {"judge": {"rubric": rubric}}
        answer = (await compare(client, PICTURES[:3], metric="judge", options=options, explain=True)).json()
        body = {"prompt": f"a {SECRET}", "images": PICTURES[:3], "metrics": ["judge"]}
        scored = (await client.post("/score", json={**body, "options": options, "explain": True})).json()

    spreads = [each["details"]["judge"]["spread"] for each in scored["results"]]
    for pair in answer["pairs"]:
        noise = (spreads[pair["a"]] ** 2 / 4 + spreads[pair["b"]] ** 2 / 4) ** 0.5
        assert noise == pytest.approx(pair["details"]["noise"])
        assert ("tie" == pair["winner"]) is (abs(pair["details"]["difference"]) <= noise)


async def test_a_deadline_that_passes_is_an_error_of_the_late_pairs(serve, fakes):
    """Of the whole request if no pair has a verdict."""
    async with serve() as client:
        fakes["vqa"].hold.clear()
        answer = await out_of_time(
            compare(client, PICTURES[:3], rubric="preference", timeout_ms=TIMEOUT_MS),
            lambda: fakes["vqa"].held,
        )
        fakes["vqa"].hold.set()

    refused(answer, 504, "deadline_exceeded")


async def test_warnings_name_the_pictures_that_they_are_about(serve, fakes):
    """As in /score: labels with little probability, each once."""
    fakes["vqa"].answer = lambda call: Choices(((-3.0,),) * 3)
    async with serve() as client:
        answer = (await compare(client, PICTURES[:3], rubric="preference")).json()

    assert [0, 1, 2] == [each["item"] for each in answer["warning_codes"]]
    assert {"low_label_mass"} == {each["code"] for each in answer["warning_codes"]}


async def test_comparisons_have_instruments_of_their_own(serve):
    """By route and lane; each order is a score of the judge."""
    async with serve() as client:
        await compare(client, PICTURES[:3], rubric="preference", priority="bulk")
        text = (await client.get("/metrics")).text

    assert 'scoregate_requests_total{code="200",route="/compare"} 1.0' in text
    assert 'scoregate_request_duration_seconds_count{lane="bulk",route="/compare"} 1.0' in text
    assert 'scoregate_scores_total{metric="judge",result="ok"} 6.0' in text
