"""What callers see is the same whether models run in the service's process or on Ray."""

import re
import signal
from concurrent.futures import ThreadPoolExecutor
from operator import itemgetter

import httpx
import pytest

from tests.external.ray.services import Served, items, picture
from tests.support.pictures import b64
from tests.support.ray_cluster import gateway
from tests.support.service import until

METRICS = ("vqascore", "clipscore", "dsg")


def test_scores_do_not_depend_on_the_runtime(local, four, ray):
    asked = items(20)
    ours, copies, theirs = (
        [result["scores"] for result in each.score(asked, *METRICS).json()["results"]]
        for each in (local, four, ray)
    )

    assert ours == copies == theirs
    assert all(0 < scores["vqascore"] < 1 for scores in theirs)


def test_streams_of_items_with_metrics_of_their_own_do_not_depend_on_the_runtime(local, four, ray):
    """Each line has the scores of its item, and the last one the models of all."""
    names = ("vqascore", "clipscore", "dsg")
    asked = [
        {**item, "metrics": [name]}
        for item, name in zip(items(9, 90_000, "a red dog"), names * 3, strict=True)
    ]
    ours, copies, theirs = (each.streamed(asked) for each in (local, four, ray))
    [whole, *others] = (
        sorted((line["index"], line["scores"]) for line in lines[:-1]) for lines in (ours, copies, theirs)
    )

    assert [whole] * 2 == others
    assert [(index, [names[index % 3]]) for index in range(9)] == [(n, [*scores]) for n, scores in whole]
    assert all(lines[-1]["done"] for lines in (ours, copies, theirs))
    assert ours[-1]["models"] == theirs[-1]["models"]


def test_outputs_of_edits_and_films_do_not_depend_on_the_runtime(local, four, ray):
    """The frames of a film and the source of an edit go to the model with the call."""
    frames = [b64(picture(number)) for number in range(80_000, 80_004)]
    still = {"prompt": "a red dog", "image": b64(picture(81_000)), "source": b64(picture(81_001))}
    edit = {**still, "metrics": ["editreward", "editreward.following"]}
    film = {"prompt": "a dog runs", "image": frames, "metrics": ["videoalign", "videoalign.motion"]}
    ours, copies, theirs = (
        [result["scores"] for result in each.score([edit, film]).json()["results"]]
        for each in (local, four, ray)
    )

    assert ours == copies == theirs
    assert [{"editreward", "editreward.following"}, {"videoalign", "videoalign.motion"}] == [
        *map(set, theirs)
    ]
    assert theirs[1]["videoalign"] != theirs[1]["videoalign.motion"]


def test_comparisons_do_not_depend_on_the_runtime(local, four, ray):
    """By scores, and by a judge of pairs; in a schedule the later rounds depend on the first."""
    images = [b64(picture(number)) for number in range(70_000, 70_006)]
    for how in ({}, {"rubric": "preference", "schedule": {"kind": "swiss", "pairs_per_image": 2}}):
        asked = {"prompt": "a red dog", "images": images, **how}
        ours, copies, theirs = (each.post("/compare", asked) for each in (local, four, ray))

        assert ours["pairs"] == copies["pairs"] == theirs["pairs"]
        assert ours["strengths"] == copies["strengths"] == theirs["strengths"]
        assert [] == theirs["failed"]


def test_decisions_do_not_depend_on_the_runtime(local, four, ray):
    """Of items alone and in groups; metrics may be skipped where others are, but a score is the same."""
    wanted = items(60, 60_000)
    for number, item in enumerate(wanted[:20]):
        item["group"] = f"g{number % 4}"
    asked = {"policy": ["show", "wide"], "items": wanted, "keep": 2}
    ours, copies, theirs = (each.post("/decide", asked) for each in (local, four, ray))
    whole, *others = ([decisions(entry) for entry in each["decisions"]] for each in (ours, copies, theirs))

    assert [whole] * 2 == others
    assert {"accept", "review", "reject"} == {show for show, _ in whole}
    assert ours["policy"] == theirs["policy"]
    for several in zip(*(each["decisions"] for each in (ours, copies, theirs)), strict=True):
        shared = set.intersection(*(set(entry["scores"]) for entry in several))
        assert shared
        assert 1 == len({tuple(entry["scores"][name] for name in sorted(shared)) for entry in several})
        assert not any("errors" in entry for entry in several)


def decisions(entry):
    """The decision of each policy."""
    return entry["policies"]["show"]["decision"], entry["policies"]["wide"]["decision"]


def test_a_dialect_and_the_port_for_pickles_give_the_scores_of_the_service(served):
    """On each runtime."""
    asked = items(2, 30_000)
    ours = [each["scores"]["vqascore"] for each in served.score(asked).json()["results"]]
    prompt, pictures = asked[0]["prompt"], [picture(number) for number in (30_000, 30_001)]
    documents = [each["image"] for each in asked]
    ranked = served.post("/v1/rerank", {"model": "vqascore", "query": prompt, "documents": documents})
    pickled = served.unpickled({"images": pictures, "prompts": [prompt] * 2})

    assert ours == [each["relevance_score"] for each in sorted(ranked["results"], key=itemgetter("index"))]
    assert ours == pickled["scores"]


def test_batches_are_visible_by_device_and_decoding_in_the_timings(served):
    """On each runtime; with pictures that nobody decoded before."""
    before = sum(calls_by_device(served).values())
    timings = served.score(items(16, 40_000)).json()["timings_ms"]
    by_device = calls_by_device(served)

    assert 16 == sum(by_device.values()) - before
    assert all(timings[stage] > 0 for stage in ("decode", "prepare", "model"))
    stages = sum(spent for stage, spent in timings.items() if stage != "total")
    assert stages > 0.5 * timings["total"]


def calls_by_device(served):
    """The calls of the VQA model that each device or replica ran."""
    line = r'^scoregate_device_calls_total\{device="([^"]*)",model="vqa"\} (\S+)$'
    return {device: float(count) for device, count in re.findall(line, served.get("/metrics").text, re.M)}


def test_models_and_readiness_are_told_the_same_way(local, ray):
    ours, theirs = (each.get("/models").json() for each in (local, ray))

    assert ours["models"] == theirs["models"]
    assert all(model["ready"] for model in theirs["models"])
    assert [200, 200] == [each.get("/readyz").status_code for each in (local, ray)]


def test_a_deadline_that_passes_is_told_with_the_stage(served):
    """Whichever it is: on a busy machine even decoding may take longer than that."""
    with ThreadPoolExecutor(1) as pool:
        bulk = pool.submit(served.score, items(128, 1000), priority="bulk")
        until(lambda: served.waiting() > 0)
        late = served.score(items(8, 2000), timeout_ms=150, priority="bulk")
        assert 200 == bulk.result().status_code

    assert 504 == late.status_code
    assert "deadline_exceeded" == late.json()["code"]
    assert re.search(r"in the stage (decode|queue|model)$", late.json()["detail"])


def test_interactive_work_does_not_wait_for_the_bulk_before_it(served):
    with ThreadPoolExecutor(1) as pool:
        bulk = pool.submit(served.score, items(128, 3000), priority="bulk")
        until(lambda: served.waiting() > 4)
        urgent = served.score(items(1, 4000))
        still = bulk.done()
        answers = bulk.result()

    assert 200 == urgent.status_code
    assert not still
    assert not answers.json()["partial"]


def test_what_could_not_be_done_in_time_is_refused_with_a_time_to_come_back(served):
    with ThreadPoolExecutor(2) as pool:
        before = [pool.submit(served.score, items(128, 5000 + 128 * n)) for n in range(2)]
        until(lambda: served.waiting("interactive") > 30)
        refused = served.score(items(64, 6000), timeout_ms=500)
        assert all(each.result().status_code == 200 for each in before)

    assert 429 == refused.status_code
    assert "lane_full" == refused.json()["code"]
    assert int(refused.headers["retry-after"]) >= 1


def test_callers_who_leave_leave_no_work_behind(served):
    before = served.waiting("interactive")
    with pytest.raises(httpx.ReadTimeout):
        httpx.post(
            f"http://127.0.0.1:{served.port}/score",
            json={"items": items(128, 7000), "metrics": ["vqascore"], "timeout_ms": 60_000},
            timeout=0.1,  # four devices take 0.4 s
            trust_env=False,
        )
    until(lambda: served.waiting("interactive") <= before)

    assert 200 == served.score(items(1, 8000)).status_code


def test_a_broken_picture_is_its_items_fault_and_no_neighbours(served):
    broken = {"prompt": "a red square", "image": b64(b"\x89PNG\r\n\x1a\n" + b"\0" * 100)}
    answer = served.score([*items(3, 9000), broken]).json()

    assert "image_undecodable" == answer["results"][3]["errors"]["vqascore"]["code"]
    assert all("vqascore" in result["scores"] for result in answer["results"][:3])


def test_sigterm_answers_what_was_accepted(profile, tmp_path):
    with gateway(profile, tmp_path / "log") as (process, port), ThreadPoolExecutor(4) as pool:
        service = Served(port)
        asked = [pool.submit(service.score, items(32, 10_000 + 32 * n)) for n in range(4)]
        until(lambda: service.waiting("interactive") > 40)
        process.send_signal(signal.SIGTERM)
        answers = [each.result() for each in asked]

        assert {200} == {answer.status_code for answer in answers}
        assert not any(answer.json()["partial"] for answer in answers)
        assert 0 == process.wait(60)
