"""
OpenAI's SDK as a judge's client, run by `test_judges.py` in the environment of `make clients`.

Reads `{"url", "prompt", "picture"}`, and writes the typed answers.
"""

import json
import sys

import openai

given = json.load(sys.stdin)
client = openai.OpenAI(base_url=f"{given['url']}/v1", api_key="none", max_retries=0)


def judged(text, model="vqascore", **more):
    """The only choice of the answer."""
    parts = [
        {"type": "image_url", "image_url": {"url": given["picture"]}},
        {"type": "text", "text": text},
    ]
    answer = client.chat.completions.create(
        model=model, messages=[{"role": "user", "content": parts}], temperature=0, **more
    )
    [choice] = answer.choices
    return choice


try:
    judged(given["prompt"], stream=True)
    refusal = ""
except openai.BadRequestError as error:
    refusal = error.message

[token] = judged(given["prompt"], logprobs=True, top_logprobs=20, max_completion_tokens=1).logprobs.content
print(
    json.dumps(
        {
            "score": json.loads(judged(given["prompt"]).message.content),
            "logprobs": {each.token: each.logprob for each in token.top_logprobs},
            "refusal": refusal,
        }
    )
)
