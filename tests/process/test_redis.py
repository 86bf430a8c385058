"""The Redis of question sets and scores dies, comes back, hangs and goes on, under load."""

import asyncio
import itertools

import httpx

from demo.process import url
from models.core.calls import LikelihoodCall
from models.core.contract import QUESTION
from models.images.image import Image
from tests.support.double import faulty
from tests.support.fakes import FakeVqa
from tests.support.pictures import item, png

LOADERS = 8
EACH = 20  # answers that are awaited before the next thing happens
SERVED = (200, None)
REFUSED = (503, "not_ready")


class Load:
    """Asks without an end, each time about a prompt that nobody has asked about before."""

    def __init__(self, client):
        self.client, self.numbers = client, itertools.count()
        self.sets = []  # of each request that needs a question set: status and code
        self.shares = set()  # DSG scores: of all prompts the same, since their questions are
        self.wrong = []  # answers without a set that are not right

    async def run(self):
        while True:
            prompt = f"a red dog and a blue cat {next(self.numbers)}"
            scored = await self.ask(prompt, "vqascore")
            if scored.status_code != 200 or value(scored, "vqascore") != right(prompt):
                self.wrong.append(scored.text)
            asked = await self.ask(prompt, "dsg")
            self.sets.append((asked.status_code, asked.json().get("code")))
            if asked.status_code == 200:
                self.shares.add(value(asked, "dsg"))

    async def ask(self, prompt, metric):
        return await self.client.post("/score", json={"items": [item(prompt)], "metrics": [metric]})

    async def until(self, outcome):
        """Return once so many sets came out like that, one after the other."""
        seen = len(self.sets)
        while self.sets[seen:][-EACH:] != [outcome] * EACH:
            await asyncio.sleep(0.01)


def value(answer, metric):
    return answer.json()["results"][0]["scores"].get(metric)


def right(prompt):
    """What the fake says of the picture, computed here."""
    call = LikelihoodCall(Image(png()), QUESTION.replace("{}", prompt))
    return FakeVqa().answer(call).normalized("reference")


async def outages(port, redis):
    """The load, and what `/readyz` said in the middle of each outage."""
    ready = []
    async with httpx.AsyncClient(base_url=url(port), timeout=60, trust_env=False) as client:
        load = Load(client)
        async with asyncio.timeout(60), asyncio.TaskGroup() as group:
            loaders = [group.create_task(load.run()) for _ in range(LOADERS)]
            await load.until(SERVED)
            for begin, end in ((redis.kill, redis.start), (redis.hang, redis.go_on)):
                begin()
                await load.until(REFUSED)
                ready.append(await client.get("/readyz"))
                end()
                await load.until(SERVED)
            for loader in loaders:
                loader.cancel()
    return load, ready


def test_while_redis_is_gone_sets_are_refused_and_scores_stay_right(tmp_path, own_redis):
    """No 500, no wrong score, and answers keep coming; back again, it is used with no restart."""
    caches = {"SCOREGATE_CACHE__QUESTIONS": own_redis.url, "SCOREGATE_CACHE__SCORES": own_redis.url}
    with faulty(tmp_path, **caches) as double:
        load, ready = asyncio.run(outages(double.port, own_redis))

        assert [] == load.wrong
        assert [True] == [isinstance(share, float) for share in load.shares]
        assert {SERVED, REFUSED} == set(load.sets)
        assert [200, 200] == [answer.status_code for answer in ready]
        assert [["cannot", "cannot"]] * 2 == [
            [state.split()[0] for state in answer.json()["caches"].values()] for answer in ready
        ]
        assert double.process.poll() is None
        assert "traceback" not in double.log.read_text("utf-8")
        assert {"questions", "scores"} == {key.split(b":")[1].decode() for key in own_redis.held()}
