"""Requests for one metric that asks question sets."""


async def scored(client, metric, item, **options):
    """The result of one item, explained."""
    result, _ = await noted(client, metric, item, **options)
    return result


async def noted(client, metric, item, **options):
    """The same, and what the metric warns about."""
    body = {"items": [item], "metrics": [metric], "options": {metric: options}, "explain": True}
    answer = await client.post("/score", json=body)
    assert 200 == answer.status_code, answer.text
    told, warnings = answer.json(), answer.json().get("warnings", [])
    beginning = f"item 0, {metric}: "
    return told["results"][0], [w.removeprefix(beginning) for w in warnings if w.startswith(beginning)]


async def written(client, style, prompt, **options):
    """The answer of `/questions` for one prompt."""
    body = {"prompts": [prompt], "style": style, "options": options}
    return await client.post("/questions", json=body)
