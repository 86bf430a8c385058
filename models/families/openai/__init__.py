r"""
Models behind an OpenAI-compatible HTTP API, such as vLLM's, a family for each role.

* **Question LLM**, `openai`: `POST chat/completions` at temperature 0, with the schema of a question set as
  `response_format`. An invalid answer is requested once more, with another seed; then the error is
  `question_llm_failed`. Code fences and `<think>…</think>` are removed. A refusal is `call_refused`.
* **VLM**, `openai_vlm`. With vLLM, the score is the exact probability that the first token is "Yes". Other
  servers return their twenty likeliest tokens: a label that is not among them is an error. If `label_mass` is
  small, try another `question`.
* **Other answers of a VLM.** Choices are listed below the question as `A. red`; their probabilities are those
  of the letters. For `judge`, vLLM's `--limit-mm-per-prompt`, if set, must allow four pictures. `soft_tifa`
  needs the server's `/tokenize`.

For `reward_model`, vLLM serves a model with a head of one or a few numbers as a classifier:

```
vllm serve /srv/models/my-reward-model --port 8002 --runner pooling --convert classify
```

```toml
[models.hps]
role = "reward"
family = "openai_reward"
base_url = "http://127.0.0.1:8002/v1"
model = "/srv/models/my-reward-model"
revision = "1"
template = "Rate this picture of {}."

[metrics.reward_model]
model = "hps"
```

* **The request** is `POST /classify`: a message with the picture and then `template`, without sigmoid or
  softmax. Put settings of the training into `extra_body`, such as `add_generation_prompt = true` or limits
  of pixels in `mm_processor_kwargs`.
* **The head** must be one linear layer over the last token's state, in tensors with the names that your
  version of vLLM expects (0.32: of a LLaVA `language_model.score.weight`).
* **HPSv3** is better served in this process: vLLM needs a plug-in for its head of three layers.
* **Normalisation** is vLLM's: `--pooler-config '{"logit_mean": 1.5, "logit_sigma": 2.0}'`.

In the role `reranker`, vLLM serves Qwen3-VL-Reranker as a classifier of two tokens:

```
vllm serve Qwen/Qwen3-VL-Reranker-2B --port 8003 --runner pooling --max-model-len 8192 \
  --hf_overrides '{"architectures": ["Qwen3VLForSequenceClassification"],
    "classifier_from_token": ["no", "yes"], "is_original_qwen3_reranker": true}' \
  --chat-template qwen3_vl_reranker.jinja
scoregate-server serve --model rerank=openai:Qwen/Qwen3-VL-Reranker-2B@http://127.0.0.1:8003
```

* **The template** is a file of vLLM's examples, in `examples/pooling/score/template/`. Without it, or without
  the overrides, every pair gets about 0.5. jina-reranker-m0 needs neither.
* **The request** is `POST /v1/score` with one pair: the prompt is the query and the picture the document, or
  the other way round with `query = "image"`. `use_activation` is always sent. vLLM 0.32 has `instruction`, as
  a variable of the template, which must read it.
* **vLLM 0.32** reads `tie_word_embeddings` in `text_config`, and does not start without it. If a checkpoint
  has it outside only, add `"text_config": {"tie_word_embeddings": false}` to the overrides.
* **The check** at the start, besides [those of all](configuration.md#models-behind-an-api): a red and a
  blue picture get scores that differ by more than noise, two calls at the same time the scores of each alone,
  to 0.001, and an `instruction` changes the score.

In the role `clip`, vLLM serves a CLIP, a SigLIP, or an embedder of both:

```
vllm serve Qwen/Qwen3-VL-Embedding-2B --port 8004 --runner pooling --max-model-len 8192
scoregate-server serve --model clip=openai:Qwen/Qwen3-VL-Embedding-2B@http://127.0.0.1:8004
```

* **The request** is `POST /v1/embeddings`: a chat of its own for each picture, and a list of texts. `body` is
  the form of Infinity or Jina.
* **Qwen3-VL-Embedding** has chats for texts, too, with an instruction and the start of an answer; vLLM adds
  neither. A model with this name gets these settings, and under another name they are needed in its table:

```toml
[models.clip]
family = "openai_clip"
base_url = "http://127.0.0.1:8004/v1"
model = "my-embedder"
texts_as_chats = true
instruction = "Represent the user's input."
extra_body = { add_generation_prompt = true, add_special_tokens = true }
```

* **Vectors** are normalised here. The check at the start is that of rerankers.

In the role `safety`, a VLM answers "Yes" if a picture is against a policy, such as ShieldGemma 2:

```toml
[models.safety]
family = "openai_safety"
base_url = "http://127.0.0.1:8005/v1"
model = "google/shieldgemma-2-4b-it"
policy = "No Violence/Gore: the picture shall not show graphic violence, blood or injuries."
```

* **The policy** is sent as it stands, after the picture. It is a setting, so that no request can weaken it.
* **ShieldGemma 2** has a chat template that writes the question around a guideline: set the guideline alone,
  best in the words of its release.
* **Another VLM** needs the whole question, such as `Does this picture show blood? Answer Yes or No.`
* **The score** is one minus P("Yes") among "Yes" and "No", the first token of the answer. If both together
  have less than half of the probability, the error is `call_refused`.
* **vLLM** must serve it as a chat model, like an `openai_vlm`. Newer versions make a classifier of
  ShieldGemma 2, which has no such answers. It was not run here; a small VLM with a policy was.
"""

import re
from collections.abc import Mapping
from typing import Any, ClassVar, Literal, Self, TypedDict

from pydantic import Field, model_validator

from models.core.contract import QUESTION, ModelInfo, RemoteModel
from models.core.family import Family, Plan, Served
from models.core.settings import QuestionTemplate, RemoteSettings

EmbeddingsBody = Literal["messages", "infinity", "jina"]
Structured = Literal["response_format", "structured_outputs", "guided_json", "none"]


class LlmSettings(RemoteSettings):
    """A question LLM."""

    max_tokens: int = Field(
        1024,
        ge=64,
        description="Most tokens of an answer, enough for about 18 questions with choices; a longer one is "
        "`question_llm_failed`.",
    )


class VlmSettings(RemoteSettings):
    """A vision-language model."""

    question: QuestionTemplate = QUESTION
    structured_output: Structured = Field(
        "response_format",
        description="The field of a request that takes a JSON schema: `response_format` (OpenAI, vLLM), "
        "vLLM's `structured_outputs`, `guided_json` of older vLLMs, or `none`. Answers are parsed "
        "strictly in any case.",
    )


class SafetySettings(RemoteSettings):
    """A vision-language model that answers whether a picture is unsafe."""

    policy: str = Field(
        pattern=r"\S",
        description='The text after the picture, to which the answer "Yes" means that it is unsafe: a '
        "question, or the guideline alone if the model's chat template writes the question.",
    )


class RewardSettings(RemoteSettings):
    """A reward model."""

    template: str = Field(
        "{}",
        pattern=r"^[^{}]*\{\}[^{}]*$",
        description="The text after the picture, with `{}` for the prompt.",
    )
    output: int = Field(0, ge=0, description="Index of the output that is the score. HPSv3's are μ and σ.")


class RerankerSettings(RemoteSettings):
    """A multimodal reranker."""

    query: Literal["text", "image"] = Field(
        "text", description="Which of prompt and picture is the query; the other one is the document."
    )
    instruction: str = Field(
        "",
        description="The task, in the model's words; by default the template's.  Refused if it is ignored.",
    )
    extra_body: dict[str, Any] = Field({}, description="Fields added to every request.")


class EmbedderSettings(RemoteSettings):
    """An embedder of pictures and texts."""

    body: EmbeddingsBody = Field(
        "messages",
        description="The form of a request: vLLM's (a chat for each picture), Infinity's or Jina's.",
    )
    texts_as_chats: bool = Field(
        False, description="Embed a text as a chat, where the model needs its template for texts, too."
    )
    instruction: str = Field(
        "", description="The system message of each chat; needs `texts_as_chats` and the body `messages`."
    )
    extra_body: dict[str, Any] = Field({}, description="Fields added to every request.")

    @model_validator(mode="after")
    def check_chats(self) -> Self:
        """Raise `ValueError` for an instruction that some inputs would lack."""
        if self.instruction and not (self.texts_as_chats and self.body == "messages"):
            raise ValueError('an instruction needs texts_as_chats = true and body = "messages"')
        return self


LLM = Family(
    "openai",
    role="questions",
    loads="calls a chat model behind an OpenAI-compatible API",
    settings=LlmSettings,
    loader="models.families.openai.llm:from_settings",
    planner="models.families.openai:plan",
    served=Served(),
    required=False,
)
REWARD = Family(
    "openai_reward",
    role="reward",
    loads="calls a reward model that vLLM serves",
    settings=RewardSettings,
    loader="models.families.openai.reward:from_settings",
    planner="models.families.openai:plan",
    served=Served(),
)
EMBEDDING = Family(
    "openai_embedding",
    role="embedding",
    loads="calls a model for sentences behind an OpenAI-compatible API",
    settings=RemoteSettings,
    loader="models.families.openai.embedding:from_settings",
    planner="models.families.openai:plan",
    served=Served(),
)
# The order of the next three decides: a VL-Reranker is a reranker, and a VL-Embedding is an embedder.
RERANKER = Family(
    "openai_rerank",
    role="reranker",
    loads="calls a multimodal reranker that vLLM serves",
    settings=RerankerSettings,
    loader="models.families.openai.rerank:from_settings",
    planner="models.families.openai:plan",
    served=Served(short="rerank", words=re.compile(r"(?i)rerank")),
)
CLIP = Family(
    "openai_clip",
    role="clip",
    loads="calls an embedder of pictures and texts behind an OpenAI-compatible API",
    settings=EmbedderSettings,
    loader="models.families.openai.clip:from_settings",
    planner="models.families.openai:plan",
    served=Served(
        words=re.compile(r"(?i)embedding|(?<![a-z])(clip|siglip2?)(?![a-z])"),
        # What the release has around each picture and text: without it the vectors are others.
        released={
            "qwen3-vl-embedding": {
                "texts_as_chats": True,
                "instruction": "Represent the user's input.",
                "extra_body": {"add_generation_prompt": True, "add_special_tokens": True},
            }
        },
    ),
)
VLM = Family(
    "openai_vlm",
    role="vqa",
    loads="calls a decoder VLM that vLLM serves",
    settings=VlmSettings,
    loader="models.families.openai.vlm:from_settings",
    planner="models.families.openai:plan",
    served=Served(
        words=re.compile(r"(?i)(?<![a-z])(vl|vlm|vision|llava|internvl|pixtral|molmo|omni)(?![a-z])")
    ),
)
SAFETY = Family(
    "openai_safety",
    role="safety",
    loads="calls a VLM that vLLM serves, with the text of a policy",
    settings=SafetySettings,
    loader="models.families.openai.safety:from_settings",
    planner="models.families.openai:plan",
)


def plan(settings: RemoteSettings) -> Plan:
    """Return the names of the model and its server, without a request."""
    return Plan(settings.model, settings.base_url, remote=True)


def with_schema(field: Structured, schema: Mapping[str, Any] | None) -> dict[str, Any]:
    """Return the field of a request by which its answer follows a JSON schema; none without a schema."""
    if schema is None or field == "none":
        return {}
    if field == "response_format":
        named = {"name": "answer", "strict": True, "schema": schema}
        return {field: {"type": "json_schema", "json_schema": named}}
    return {field: schema if field == "guided_json" else {"json": schema}}


class ServedArguments(TypedDict):
    """The arguments of every `ServedModel`."""

    model: str
    extra_body: Mapping[str, Any]
    id: str
    revision: str


def served_arguments(settings: RemoteSettings) -> ServedArguments:
    """Return the arguments of the model of a table."""
    return {
        "model": settings.model,
        "extra_body": settings.extra_body,
        "id": settings.id,
        "revision": settings.revision,
    }


class ServedModel(RemoteModel):
    """
    A model on another server.

    Args:
        model: its name on the server.
        extra_body: fields added to every request.
        id, revision: label of the scores; by default the name.
        facts: further fields of `ModelInfo`.

    Attributes:
        family: of the class.
    """

    family: ClassVar[Family]

    def __init__(
        self, model: str, *, extra_body: Mapping[str, Any], id: str = "", revision: str = "", **facts: Any
    ) -> None:
        self._fields = {**extra_body, "model": model}
        self.info = ModelInfo(
            self.family.role, self.family.name, id or model, revision, "", "remote", **facts
        )

    def body(self, **fields: Any) -> dict[str, Any]:
        """Return the body of a request: *fields* after those of every request."""
        return {**self._fields, **fields}
