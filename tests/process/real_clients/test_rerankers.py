"""Real clients of rerankers read the scores of `POST /score`, in their order."""

from pathlib import Path

import pytest

from tests.process.real_clients.conftest import PICTURES, PROMPT
from tests.support import clients

SCRIPT = Path(__file__).with_name("rerankers.py")
URIS = [f"data:image/png;base64,{picture}" for picture in PICTURES]


@pytest.fixture(scope="module")
def answers(service):
    """What each client of `rerankers.py` made of the same three pictures."""
    given = {"url": service.dialects, "query": PROMPT, "documents": URIS}
    return clients.answers(SCRIPT, given)


@pytest.mark.parametrize(
    "client",
    [
        "cohere_v1",
        "cohere_v2",
        "infinity_client",
        "litellm_cohere",
        "litellm_dicts",
        "litellm_hosted_vllm",
        "litellm_huggingface",
        "litellm_infinity",
        "litellm_jina_ai",
    ],
)
def test_a_client_reads_the_scores_in_their_order(service, answers, client):
    """Only its address is changed."""
    assert [list(pair) for pair in service.ranking] == answers[client]


def test_a_client_reads_the_documents_that_it_sent(service, answers):
    """Cohere's first version, whose documents have a text."""
    assert [URIS[number] for number, _ in service.ranking] == answers["cohere_v1_documents"]
