"""Requests for DSG scores, and questions that depend on each other."""

from service.questions.sets import Question

CHAIN = (Question(1, "a"), Question(2, "b", depends_on=(1,)), Question(3, "c", depends_on=(2,)))


async def post(client, path, body):
    return await client.post(path, json=body)


def dsg(*items, **options):
    return {"items": list(items), "metrics": ["dsg"], "options": {"dsg": options}, "explain": True}
