"""
OpenAI's SDK as a client of decisions, run by `test_deciders.py` in the environment of `make clients`.

Reads `{"url", "prompt", "picture"}`, and writes the typed answers.
"""

import json
import sys

import openai

given = json.load(sys.stdin)
client = openai.OpenAI(base_url=f"{given['url']}/v1", api_key="none", max_retries=0)
PREDICATE = {"type": "predicate", "name": "right", "instructions": f"It shows {given['prompt']}."}
CHOICE = {
    "type": "choice",
    "instructions": "Which colour is it?",
    "choices": [{"value": "red"}, {"value": "blue"}],
}
SCORE = {
    "type": "score",
    "instructions": "How good is it?",
    "levels": [{"label": "poor"}, {"label": "fair"}, {"label": "good"}],
}


def decided(*questions):
    """The answers about the picture."""
    image = {"type": "input_image", "image_url": given["picture"]}
    message = {"role": "user", "content": [image]}
    return client.decisions.create(model="vqa", input=[message], questions=questions).answers


try:
    decided({**CHOICE, "choices": [{"value": "red"}]})
    refusal = ""
except openai.BadRequestError as error:
    refusal = error.message

predicate, choice, score = decided(PREDICATE, CHOICE, SCORE)
print(
    json.dumps(
        {
            "predicate": [predicate.name, predicate.probability],
            "choice": [choice.choice, {each.value: each.probability for each in choice.probabilities}],
            "score": [score.score, {each.value: each.probability for each in score.probabilities}],
            "refusal": refusal,
        }
    )
)
