"""
The client that openapi-python-client makes, run by `test_generated.py` beside it.

Reads `{"url", "prompt", "images"}`, and writes the scores, and the ranking as (index, score).
"""

import json
import sys

from generated_client import Client
from generated_client.api.default import (
    models_models_get,
    questions_questions_post,
    rank_rank_post,
    score_score_post,
)
from generated_client.models import (
    Options,
    QuestionsRequest,
    RankRequest,
    ScoreRequest,
    VqaScoreOptions,
    VqaScoreOptionsOutput,
    WireItem,
)

given = json.load(sys.stdin)
asked = {"prompt": given["prompt"], "images": given["images"]}
with Client(base_url=given["url"]) as client:
    short = score_score_post.sync(client=client, body=ScoreRequest(**asked))
    options = Options(vqascore=VqaScoreOptions(output=VqaScoreOptionsOutput.LOGIT))
    items = [WireItem(prompt=given["prompt"], image=image) for image in given["images"]]
    logits = score_score_post.sync(client=client, body=ScoreRequest(items=items, options=options))
    ranked = rank_rank_post.sync(client=client, body=RankRequest(**asked, top_k=1))
    [written] = questions_questions_post.sync(
        client=client, body=QuestionsRequest(prompts=["a red dog"])
    ).sets
    metrics = models_models_get.sync(client=client).metrics
print(
    json.dumps(
        {
            "scores": [result.scores["vqascore"] for result in short.results],
            "logits": [result.scores["vqascore"] for result in logits.results],
            "ranking": [(place.index, place.score) for place in ranked.ranking],
            "accepted": [place.index for place in ranked.ranking if place.accepted],
            "questions": [question.text for question in written.questions],
            "metrics": sorted(metrics.additional_properties),
        }
    )
)
