"""`POST /decide`: a decision for each item whatever fails, stages, groups, and several policies."""

import hashlib
import json
import sqlite3
import time
from contextlib import closing
from dataclasses import replace

import pytest

from tests.support.app import forecast, is_dear, service_of
from tests.support.pictures import b64, png
from tests.support.refusals import refused

pytestmark = pytest.mark.anyio

LONG_MS = 60_000
AS_JSON = ("scores", "errors", "skipped", "models")  # columns of the log
PICTURES = {colour: b64(png(colour)) for colour in ("red", "blue", "green", "white")}
FIT = {"accept": "vqascore >= 0.5", "review": "vqascore >= 0.2", "timeout_ms": LONG_MS}
BOTH = {"accept": "clipscore >= -0.999 and vqascore >= 0.5", "timeout_ms": LONG_MS}
RANKED = {"accept": "vqascore >= 0.000001", "rank_by": "vqascore", "timeout_ms": LONG_MS}
ITEMS = [{"image": image, "prompt": "a red square"} for image in PICTURES.values()]


async def decide(client, policy="show", items=ITEMS, **fields):
    return await client.post("/decide", json={"policy": policy, "items": items, **fields})


async def made(client, *args, **fields):
    """The decisions of an answer, which is one."""
    answer = await decide(client, *args, **fields)
    assert 200 == answer.status_code, answer.text
    return answer.json()["decisions"]


async def scores(client, metric="vqascore", items=ITEMS):
    answer = (await client.post("/score", json={"items": items, "metrics": [metric]})).json()
    return [each["scores"][metric] for each in answer["results"]]


def first_of(items):
    return [item["decision"] for item in items]


def dear(client, name, until_s=0.0):
    """Have a model be the last stage, and its pool predict until when a request takes."""
    is_dear(client, name)
    forecast(client, name, wait_s=0.0, run_s=until_s)


async def test_each_item_has_the_decision_of_its_score(serve):
    """The scores are those of `/score`, and the sentence has them."""
    async with serve(policies={"show": FIT}) as client:
        answer = (await decide(client, items=[{**ITEMS[0], "id": "mine"}, *ITEMS[1:]])).json()
        plain = await scores(client)
        listed = (await client.get("/policies")).json()["policies"]

    assert {"request_id", "policy", "decisions", "models", "provenance", "timings_ms"} == answer.keys()
    assert listed["show"]["id"] == answer["policy"]
    assert listed["show"]["accept"] == FIT["accept"]
    for index, (entry, score) in enumerate(zip(answer["decisions"], plain, strict=True)):
        decision = "accept" if score >= 0.5 else "review" if score >= 0.2 else "reject"
        assert (index, decision, {"vqascore": score}, []) == (
            *(entry[name] for name in ("index", "decision", "scores", "skipped")),
        )
        assert entry["because"].startswith(f"vqascore {float(f'{score:.6g}')} ")
    assert "mine" == answer["decisions"][0]["id"]
    assert len(ITEMS) == len({entry["decision_id"] for entry in answer["decisions"]})


async def test_forms_and_file_parts_are_read_as_by_score(serve):
    """A plain form with one picture, and JSON with parts."""
    files = {"image": ("a.png", png("red"))}
    body = {"policy": "show", "items": [{"image": {"part": "image"}, "prompt": "a red square"}]}
    async with serve(policies={"show": FIT}) as client:
        [one] = await made(client, items=ITEMS[:1])
        plain = await client.post("/decide", data={"policy": "show", "prompt": "a red square"}, files=files)
        parts = await client.post("/decide", data={"request": json.dumps(body)}, files=files)

    for answer in (plain, parts):
        assert 200 == answer.status_code
        assert one["scores"] == answer.json()["decisions"][0]["scores"]


async def test_a_metric_that_cannot_change_the_decision_is_skipped(serve, fakes):
    """The cheaper one runs first; only items that it does not decide are shown to the other model."""
    policy = {"accept": "clipscore >= -0.999 or vqascore >= 0.5", "timeout_ms": LONG_MS}
    async with serve(policies={"show": policy}) as client:
        dear(client, "vqa")
        entries = await made(client)

    assert [["vqascore"]] * len(ITEMS) == [entry["skipped"] for entry in entries]
    assert [{"clipscore"}] * len(ITEMS) == [entry["scores"].keys() for entry in entries]
    assert ["accept"] * len(ITEMS) == first_of(entries)
    assert [] == fakes["vqa"].calls


async def test_the_next_metric_runs_if_the_first_does_not_decide(serve, fakes):
    """Each item by itself."""
    async with serve(policies={"show": BOTH}) as client:
        dear(client, "vqa")
        entries = await made(client)
        plain = await scores(client)

    assert [[]] * len(ITEMS) == [entry["skipped"] for entry in entries]
    assert plain == [entry["scores"]["vqascore"] for entry in entries]


async def test_a_hung_model_has_a_decision_in_time(serve, fakes):
    """Without the score, by the code of its error."""
    async with serve(policies={"show": {**FIT, "without_score": "review"}}) as client:
        fakes["vqa"].hold.clear()
        answer = await decide(client, timeout_ms=100)
        fakes["vqa"].hold.set()

    assert 200 == answer.status_code
    for entry in answer.json()["decisions"]:
        assert ("review", "without_score: vqascore deadline_exceeded") == (
            entry["decision"],
            entry["because"],
        )
        assert "deadline_exceeded" == entry["errors"]["vqascore"]["code"]
        assert [] == entry["skipped"]


async def test_the_rest_starts_while_a_stage_hangs_if_it_would_be_late(serve, fakes):
    """What was started is never skipped."""
    policy = {"accept": "clipscore >= 0.5 or vqascore >= 0.000001", "timeout_ms": 300}
    models = {name: {"family": "fake", "role": fake.role} for name, fake in fakes.items()}
    models["clip"]["device"] = "cuda:9"  # not the one that holds the other model
    async with serve(policies={"show": policy}, models=models) as client:
        dear(client, "vqa", until_s=0.2)
        fakes["clip"].hold.clear()
        entries = await made(client)
        fakes["clip"].hold.set()

    assert ["accept"] * len(ITEMS) == first_of(entries)
    assert [["vqascore"]] * len(ITEMS) == [[*entry["scores"]] for entry in entries]
    assert [[]] * len(ITEMS) == [entry["skipped"] for entry in entries]
    assert {"deadline_exceeded"} == {entry["errors"]["clipscore"]["code"] for entry in entries}


async def test_what_was_not_started_in_time_is_skipped(serve, fakes):
    """The first stage hangs, and the second has no prediction, so it may wait until the end."""
    async with serve(policies={"show": {**BOTH, "timeout_ms": 100}}) as client:
        dear(client, "vqa")
        fakes["clip"].hold.clear()
        entries = await made(client)
        fakes["clip"].hold.set()

    assert [["vqascore"]] * len(ITEMS) == [entry["skipped"] for entry in entries]
    assert {"without_score: clipscore deadline_exceeded"} == {entry["because"] for entry in entries}


async def test_items_of_one_metric_are_admitted_as_a_whole(serve):
    """One check for all of their calls, in place of one for each item."""
    async with serve(policies={"show": FIT}) as client:
        calls = forecast(client, "vqa")
        await made(client)

    assert [len(ITEMS)] == calls


async def test_decisions_that_rest_on_a_demo_model_have_a_warning(serve, fakes):
    """As scores have."""
    async with serve(policies={"show": FIT}, models={name: {"family": "fake"} for name in fakes}) as client:
        answer = (await decide(client)).json()

    assert [{"code": "demo_model"}] == answer["warning_codes"]


async def test_a_full_lane_is_the_items_error(serve):
    """With the decision of `without_score`; the request is not refused."""
    async with serve(policies={"show": {**FIT, "without_score": "accept"}}) as client:
        forecast(client, "vqa", full=True)
        entries = await made(client)

    assert ["accept"] * len(ITEMS) == first_of(entries)
    assert {"without_score: vqascore lane_full"} == {entry["because"] for entry in entries}


async def test_where_the_lane_takes_some_of_the_items_these_are_scored(serve):
    """A request that is too much as a whole is tried item by item."""
    async with serve(policies={"show": FIT}) as client:
        backend, left = service_of(client).runtime.handles["vqa"].backend, [2]
        whole = backend.forecast

        def room_for_two(lane, demand):
            full = demand.calls > left[0]
            left[0] -= 0 if full else demand.calls
            return replace(whole(lane, demand), full=full)

        backend.forecast = room_for_two
        entries = await made(client)

    assert [True, True, False, False] == [bool(entry["scores"]) for entry in entries]
    assert ["lane_full"] * 2 == [entry["errors"]["vqascore"]["code"] for entry in entries[2:]]


async def test_a_model_that_fails_is_the_items_error(serve, fakes):
    """The neighbours of a call that fails are decided by their scores."""
    fakes["vqa"].fault = lambda call: ValueError("broken") if "blue" in call.question else None
    items = [*ITEMS[:2], {**ITEMS[1], "prompt": "a blue square"}]
    async with serve(policies={"show": FIT}) as client:
        *good, bad = await made(client, items=items)

    assert all("expression" not in entry and "errors" not in entry for entry in good)
    assert "without_score: vqascore model_fault" == bad["because"]


@pytest.mark.parametrize("image", ["!", b64(b"no picture")])
async def test_a_picture_that_cannot_be_read_decides_by_itself(serve, image):
    """Whatever `without_score` says."""
    policy = {**FIT, "without_score": "accept", "unreadable": "review"}
    async with serve(policies={"show": policy}) as client:
        good, bad = await made(client, items=[ITEMS[0], {**ITEMS[0], "image": image}])

    assert "errors" not in good
    assert "review" == bad["decision"]
    assert bad["because"].startswith("unreadable: ")


async def test_a_picture_that_is_not_downloaded_is_without_a_score(serve):
    """The service fetches none here, which says nothing about the picture."""
    async with serve(policies={"show": {**FIT, "without_score": "accept"}}) as client:
        [entry] = await made(client, items=[{**ITEMS[0], "image": {"url": "https://example.org/a.png"}}])

    assert "accept" == entry["decision"]
    assert "without_score: vqascore url_not_allowed" == entry["because"]


async def test_of_a_group_the_best_are_accepted(serve):
    """At most `keep` of each; the others are rejected because of the group."""
    items = [{**item, "group": "one"} for item in ITEMS[:3]] + [{**ITEMS[3], "group": "two"}, ITEMS[2]]
    async with serve(policies={"show": RANKED}) as client:
        plain = await scores(client, items=ITEMS[:3])
        one = await made(client, items=items)
        two = await made(client, items=items, keep=2)

    order = sorted(range(3), key=lambda index: -plain[index])
    assert {order[0], 3, 4} == {entry["index"] for entry in one if entry["decision"] == "accept"}
    assert {*order[:2], 3, 4} == {entry["index"] for entry in two if entry["decision"] == "accept"}
    assert "group: 1 accepted before it, by vqascore" == one[order[1]]["because"]
    assert ["one", "one", "one", "two"] == [entry["group"] for entry in one if "group" in entry]


async def test_several_policies_decide_from_the_same_scores(serve, fakes):
    """Each call of a model once; the ids stand in the order of the names."""
    tables = {"show": FIT, "strict": {**FIT, "accept": "vqascore >= 0.999999", "timeout_ms": 30_000}}
    async with serve(policies=tables) as client:
        answer = (await decide(client, ["strict", "show"])).json()
        calls = len(fakes["vqa"].calls)
        alone = await made(client)

    assert len(ITEMS) == calls
    assert ["strict", "show"] == [id.partition("@")[0] for id in answer["policy"]]
    for entry, one in zip(answer["decisions"], alone, strict=True):
        assert {"strict", "show"} == entry["policies"].keys()
        assert one["decision"] == entry["policies"]["show"]["decision"]
        assert "accept" != entry["policies"]["strict"]["decision"]
        assert "decision" not in entry


async def test_options_are_the_policys_and_an_item_may_bring_its_questions(serve):
    """Other options would decide under an id that does not name them."""
    own = {"question_set": [{"id": 1, "text": "Is it red?"}]}
    policy = {"accept": "dsg >= 0.5 and vqascore > -9", "timeout_ms": LONG_MS}
    policy["options"] = {"vqascore": {"output": "logit"}}
    item = {**ITEMS[0], "options": {"dsg": own}}
    async with serve(policies={"show": policy}) as client:
        [entry] = await made(client, items=[item], explain=True)
        wrong = await decide(client, items=[{**item, "options": {"vqascore": {"output": "probability"}}}])

    assert "logit" in entry["details"]["vqascore"]
    assert "Is it red?" in str(entry["details"]["dsg"])
    pointer = refused(wrong, 422, "invalid")["errors"][0]["pointer"]
    assert "/items/0/options/vqascore/output" == pointer


@pytest.mark.shared
@pytest.mark.parametrize(
    ("fields", "code", "pointer"),
    [
        ({"policy": "shw"}, "unknown_policy", "/policy"),
        ({"policy": ["show", "wrong"]}, "unknown_policy", "/policy/1"),
        ({"policy": []}, "invalid", "/policy"),
        ({"policy": ["show", "show"]}, "invalid", "/policy"),
        ({"policy": ["show", "logit"]}, "invalid", "/policy"),
        ({"policy": 1}, "invalid", "/policy"),
        ({"keep": 0}, "invalid", "/keep"),
        ({"metrics": ["dsg"]}, "invalid", "/metrics"),
        ({"items": [{**ITEMS[0], "id": 129 * "a"}]}, "invalid", "/items/0/id"),
        ({"items": [{**ITEMS[0], "group": "a"}]}, "invalid", "/items/0/group"),
        ({"items": [{"image": ITEMS[0]["image"]}]}, "invalid", "/items/0/prompt"),
        ({"items": [{**ITEMS[0], "source": ITEMS[0]["image"]}]}, "invalid", "/items/0/source"),
    ],
)
async def test_only_a_request_that_is_wrong_itself_is_refused(serve, fields, code, pointer):
    """With the place, and the policies that there are."""
    logit = {"accept": "vqascore > 1", "options": {"vqascore": {"output": "logit"}}}
    async with serve(policies={"show": FIT, "logit": logit}) as client:
        problem = refused(await decide(client, **{"policy": "show", **fields}), 422, code)

    assert pointer == problem["errors"][0]["pointer"]
    if code == "unknown_policy":
        assert ["show", "logit"] == problem["errors"][0]["valid"]
        assert "this server has: show, logit" in problem["detail"]


async def test_decisions_are_counted_by_policy_and_reason(serve, tmp_path):
    """All series exist from the start."""
    async with serve(policies={"show": FIT}, decisions=log_in(tmp_path)) as client:
        before = counted(client)
        [good, _] = await made(client, items=[ITEMS[0], {**ITEMS[0], "image": "!"}])
        after = counted(client)
        seconds = service_of(client).instruments.decision_duration.labels("show")._sum.get()

    grown = {labels: after[labels] - before[labels] for labels in after if after[labels] != before[labels]}
    assert before.keys() == after.keys()
    assert {(good["decision"], "expression"): 1, ("reject", "unreadable"): 1} == grown
    assert sum(row["milliseconds"] for row in logged(tmp_path)) == pytest.approx(1000 * seconds)


def counted(client):
    """Decisions by decision and reason."""
    [family] = service_of(client).instruments.decisions.collect()
    return {
        (sample.labels["decision"], sample.labels["reason"]): sample.value
        for sample in family.samples
        if sample.name.endswith("_total")
    }


def log_in(folder):
    """Settings of a log of decisions."""
    return {"log": f"sqlite:///{folder}/decisions.sqlite3"}


def logged(folder):
    """The rows of that log, whose service has ended."""
    with closing(sqlite3.connect(folder / "decisions.sqlite3")) as connection:
        connection.row_factory = sqlite3.Row
        rows = [dict(row) for row in connection.execute("SELECT * FROM decisions ORDER BY rowid")]
    return [{**row, **{name: json.loads(row[name]) for name in AS_JSON}} for row in rows]


async def test_each_decision_is_in_the_log(serve, tmp_path):
    """One row for each policy and item, with what the answer says."""
    tables = {"show": FIT, "strict": {**BOTH, "accept": "vqascore >= 0.999999 and clipscore >= -0.999"}}
    async with serve(policies=tables, decisions=log_in(tmp_path)) as client:
        dear(client, "clip")
        before = time.time()
        items = [{**ITEMS[0], "id": "mine"}, {**ITEMS[0], "image": "!"}]
        answer = (await decide(client, ["show", "strict"], items)).json()

    rows, (first, second) = logged(tmp_path), answer["decisions"]
    assert [id for id in answer["policy"] for _ in items] == [row["policy"] for row in rows]
    for row, entry in zip(rows, [first, second, first, second], strict=True):
        used = {"vqascore"} if row["policy"].startswith("show@") else {"vqascore", "clipscore"}
        assert row["scores"] == {name: each for name, each in entry["scores"].items() if name in used}
        assert before <= row["time"] <= time.time()
        assert ("unreadable" if entry is second else "expression") == row["reason"]
        assert (None, None) == (row["key_name"], row["audit"])
        said = entry["policies"][row["policy"].partition("@")[0]]
        assert said == {name: row[name] for name in ("decision", "because", "skipped", "decision_id")}
        assert answer["request_id"] == row["request_id"]
        assert "a red square" == row["prompt"]
        assert 0 < row["milliseconds"]
    assert {"vqa": "fake-vqa@1"} == rows[0]["models"]
    assert ["mine", None] == [row["caller_id"] for row in rows[:2]]
    assert {"vqascore": "not_base64"} == rows[1]["errors"]
    assert [hashlib.sha256(png("red")).hexdigest(), ""] == [row["picture"] for row in rows[:2]]


async def test_a_quota_counts_what_was_computed(serve, tmp_path):
    """A request takes all metrics of its policies first, and gets those back that were skipped."""
    digest = hashlib.sha256(b"secret").hexdigest()
    (tmp_path / "keys.toml").write_text(f'[app]\nsha256 = "{digest}"\nquota = 4\n')
    policy = {"accept": "vqascore >= 0.000001 or clipscore >= 0.5", "timeout_ms": LONG_MS}
    server = {"api_keys_file": str(tmp_path / "keys.toml")}
    async with serve(policies={"show": policy}, server=server, decisions=log_in(tmp_path)) as client:
        dear(client, "clip")
        client.headers["X-API-Key"] = "secret"
        larger = await decide(client, items=ITEMS[:3])
        entries = await made(client, items=ITEMS[:2])
        again = await decide(client, items=ITEMS[:1])
        over = await decide(client, items=ITEMS[:2])

    assert [["clipscore"]] * 2 == [entry["skipped"] for entry in entries]
    assert 200 == again.status_code
    assert 429 == over.status_code
    assert "larger_than_quota" == larger.json()["code"]
    assert {"app"} == {row["key_name"] for row in logged(tmp_path)}


async def test_a_quota_counts_the_items_of_one_metric_once(serve, tmp_path):
    """They are scored together."""
    digest = hashlib.sha256(b"secret").hexdigest()
    (tmp_path / "keys.toml").write_text(f'[app]\nsha256 = "{digest}"\nquota = {2 * len(ITEMS)}\n')
    server = {"api_keys_file": str(tmp_path / "keys.toml")}
    async with serve(policies={"show": FIT}, server=server) as client:
        client.headers["X-API-Key"] = "secret"
        statuses = [(await decide(client)).status_code for _ in range(3)]

    assert [200, 200, 429] == statuses
