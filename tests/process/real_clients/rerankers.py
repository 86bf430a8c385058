"""
Real clients of rerankers, run by `test_rerankers.py` in the environment of `make clients`.

Reads `{"url", "query", "documents"}`, and writes what each client made of the answer, or its error.
"""

import json
import os
import sys
from collections.abc import Callable
from typing import Any

os.environ["LITELLM_LOCAL_MODEL_COST_MAP"] = "True"  # nothing is fetched at the import

import cohere
import infinity_client.api.default.rerank as infinity
import litellm
from infinity_client import Client as InfinityClient
from infinity_client.models import RerankInput

litellm.suppress_debug_info = True
MODEL = "vqascore"


class Rerankers:
    """Each method ranks the documents with one client, as (index, score), best first."""

    def __init__(self, url: str, query: str, documents: list[str]) -> None:
        self.url = url
        self.asked: dict[str, Any] = {"query": query, "documents": documents}

    def cohere_v1(self) -> list[Any]:
        client = cohere.Client(api_key="none", base_url=self.url)
        return ranked(client.rerank(model=MODEL, **self.asked).results)

    def cohere_v1_documents(self) -> list[Any]:
        client = cohere.Client(api_key="none", base_url=self.url)
        answer = client.rerank(model=MODEL, return_documents=True, **self.asked)
        return [result.document.text for result in answer.results]

    def cohere_v2(self) -> list[Any]:
        client = cohere.ClientV2(api_key="none", base_url=self.url)
        return ranked(client.rerank(model=MODEL, **self.asked).results)

    def infinity_client(self) -> list[Any]:
        with InfinityClient(base_url=f"{self.url}/v1") as client:
            answer = infinity.sync(client=client, body=RerankInput(model=MODEL, **self.asked))
        return ranked(answer.results)

    def litellm_cohere(self) -> list[Any]:
        return self._litellm("cohere")

    def litellm_hosted_vllm(self) -> list[Any]:
        return self._litellm("hosted_vllm")

    def litellm_huggingface(self) -> list[Any]:
        return self._litellm("huggingface")

    def litellm_infinity(self) -> list[Any]:
        return self._litellm("infinity", return_documents=False)  # it reads a document as a str

    def litellm_jina_ai(self) -> list[Any]:
        return self._litellm("jina_ai")

    def litellm_dicts(self) -> list[Any]:
        return self._litellm("jina_ai", documents=[{"image": uri} for uri in self.asked["documents"]])

    def _litellm(self, provider: str, **more: Any) -> list[Any]:
        model = f"{provider}/{MODEL}"
        answer = litellm.rerank(model=model, api_base=self.url, api_key="none", **{**self.asked, **more})
        return [(result["index"], result["relevance_score"]) for result in answer.results]


def ranked(results: Any) -> list[Any]:
    """What typed results hold."""
    return [(result.index, result.relevance_score) for result in results]


def outcome(call: Callable[[], list[Any]]) -> Any:
    """What it returns, or its error as a text."""
    try:
        return call()
    except Exception as exc:
        return f"{type(exc).__name__}: {exc}"[:2000]


if __name__ == "__main__":
    rerankers = Rerankers(**json.load(sys.stdin))
    names = [name for name in vars(Rerankers) if not name.startswith("_")]
    print(json.dumps({name: outcome(getattr(rerankers, name)) for name in names}))
