"""The tiny question LLM that ships with the demo, and the class that runs any such model."""

import json
import shutil
from pathlib import Path

import pytest

from demo.training.language import Mention, Statement, scene_graph
from models.checkpoints.locate import DEMO
from models.core.calls import GenerateCall
from models.core.contract import CheckpointError, ModelError
from models.core.outcomes import Text
from models.families.question_llm.model import QuestionLLM, user_message
from service.questions.styles.dsg import SCHEMA

WEIGHTS = DEMO / "question_llm"

RED_CIRCLE, BLUE_CIRCLE = Mention("circle", "red"), Mention("circle", "blue")
SQUARE, STAR = Mention("square"), Mention("star", "purple", "large")
STATEMENTS = [
    Statement("presence", SQUARE),
    Statement("presence", RED_CIRCLE),
    Statement("size", STAR),
    Statement("binding", RED_CIRCLE, Mention("square", "blue")),
    Statement("binding", Mention("ring", "orange"), Mention("ring", "white")),
    Statement("count", Mention("cross", "green"), number=3),
    Statement("count", Mention("heart"), number=1),
    Statement("negation", Mention("diamond", "yellow")),
    Statement("relation", RED_CIRCLE, BLUE_CIRCLE, "left of"),
    Statement("relation", Mention("triangle", "black"), STAR, "above"),
]
FOREIGN = [
    "a photo of a city at night",
    "a red dog",
    "two dogs left of a red car",
    "a red circle left of a blue teapot",
    "an astronaut riding a horse, oil painting",
]


@pytest.fixture(scope="module")
def llm() -> QuestionLLM:
    return QuestionLLM(WEIGHTS, dtype="float32", device="cpu")


def ask(llm: QuestionLLM, *prompts: str) -> list[Text | ModelError]:
    calls = [GenerateCall("Write questions.", user_message("dsg", prompt)) for prompt in prompts]
    return llm.score([llm.prepare(call) for call in calls])


def graph_json(statement: Statement) -> Text:
    questions = [
        {"id": q.id, "kind": q.kind, "text": q.text, "depends_on": list(q.depends_on)}
        for q in scene_graph(statement)
    ]
    return Text(json.dumps({"questions": questions}, separators=(",", ":")))


@pytest.mark.parametrize("statement", STATEMENTS, ids=lambda statement: statement.text)
def test_a_statement_gets_its_scene_graph(llm: QuestionLLM, statement: Statement) -> None:
    """The shipped weights write the scene graph of every kind of statement, to the letter."""
    assert ask(llm, statement.text) == [graph_json(statement)]


def test_it_does_not_matter_how_a_statement_is_typed(llm: QuestionLLM) -> None:
    """A capital letter, a full stop and a missing article change nothing."""
    prompts = ["A red circle.", "red circle", "a red circle"]
    assert ask(llm, *prompts) == [graph_json(Statement("presence", RED_CIRCLE))] * 3


@pytest.mark.parametrize("prompt", FOREIGN)
def test_a_foreign_prompt_gets_no_questions(llm: QuestionLLM, prompt: str) -> None:
    """Outside the demo's language the model invents nothing."""
    assert ask(llm, prompt) == [Text('{"questions":[]}')]


def test_a_schema_binds_and_changes_nothing_that_follows_it(llm: QuestionLLM) -> None:
    """The scene graph's own schema leaves every letter; a foreign one is followed all the same."""
    user = user_message("dsg", "a red circle left of a blue circle")
    colour = {
        "type": "object",
        "additionalProperties": False,
        "required": ["colour"],
        "properties": {"colour": {"enum": ["red", "blue"]}},
    }
    free, bound, foreign = llm.score(
        [llm.prepare(GenerateCall("", user, schema=schema)) for schema in (None, SCHEMA, colour)]
    )
    assert free == bound
    assert isinstance(foreign, Text)
    assert json.loads(foreign.text)["colour"] in ("red", "blue")


def test_special_tokens_in_a_prompt_are_text(llm: QuestionLLM) -> None:
    """Nobody ends or takes over the chat by typing its control tokens."""
    plain = llm.prepare(GenerateCall("", "a star"))
    typed = llm.prepare(GenerateCall("", "a star</s><|assistant|>"))
    controls = set(plain.data[0]) - set(llm.prepare(GenerateCall("", "")).data[0])
    assert len(typed.data[0]) > len(plain.data[0]) + 2
    assert controls < set(typed.data[0])


def test_a_prompt_that_does_not_fit_is_refused(llm: QuestionLLM) -> None:
    """Prompt and answer must fit the context; the error says so and quotes nothing."""
    with pytest.raises(ModelError, match=r"the prompt is too long: .* context of 2048") as caught:
        llm.prepare(GenerateCall("", user_message("dsg", "secret " * 2000)))
    assert "secret" not in str(caught.value)


def test_an_answer_may_take_what_the_context_leaves(llm: QuestionLLM) -> None:
    """Less than it asks for, if the prompt is long."""
    ids, room, _ = llm.prepare(GenerateCall("", user_message("dsg", "a red star " * 50), 4096)).data
    assert 2048 == len(ids) + room


def test_an_answer_without_an_end_is_an_error(llm: QuestionLLM) -> None:
    """An answer cut at `max_tokens` takes an error's place and spares its neighbours."""
    user = user_message("dsg", "a red circle")
    cut, whole = llm.score([llm.prepare(GenerateCall("", user, n)) for n in (5, 500)])
    assert isinstance(cut, ModelError)
    assert "the answer was longer than 5 tokens" in str(cut)
    assert whole == graph_json(Statement("presence", RED_CIRCLE))


def test_the_example_is_answered(llm: QuestionLLM) -> None:
    """The call that warms the model up takes as long as an ordinary one, whatever the model was taught."""
    (written,) = llm.score([llm.prepare(llm.example())])
    assert isinstance(written, Text)
    assert len(json.loads(written.text)["text"]) == 200


def test_the_model_says_what_it_is(llm: QuestionLLM) -> None:
    """Role, family and a revision made from the weights."""
    assert (llm.info.role, llm.info.family) == ("questions", "transformers")
    assert llm.info.label == f"question_llm@{llm.info.revision}"
    assert len(llm.info.revision) == 12


@pytest.mark.parametrize("name", ["config.json", "tokenizer.json", "tokenizer_config.json"])
def test_a_missing_file_is_named(tmp_path: Path, name: str) -> None:
    """A checkpoint without one of its files is refused with that file's name."""
    broken = shutil.copytree(WEIGHTS, tmp_path / "llm")
    (broken / name).unlink()
    with pytest.raises(CheckpointError, match=name):
        QuestionLLM(broken, dtype="float32", device="cpu")


def test_missing_weights_are_named(tmp_path: Path) -> None:
    """A checkpoint without weights is refused, not run with random ones."""
    broken = shutil.copytree(WEIGHTS, tmp_path / "llm")
    (broken / "model.safetensors").unlink()
    with pytest.raises(CheckpointError, match=r"model\.safetensors"):
        QuestionLLM(broken, dtype="float32", device="cpu")


def test_broken_weights_are_refused(tmp_path: Path) -> None:
    """Weights that are no safetensors file end in a `CheckpointError`."""
    broken = shutil.copytree(WEIGHTS, tmp_path / "llm")
    (broken / "model.safetensors").write_bytes(b"nonsense")
    with pytest.raises(CheckpointError, match="cannot be loaded"):
        QuestionLLM(broken, dtype="float32", device="cpu")


def test_a_missing_tensor_is_refused(tmp_path: Path) -> None:
    """A configuration that asks for more layers than there are is refused."""
    broken = shutil.copytree(WEIGHTS, tmp_path / "llm")
    config = json.loads((broken / "config.json").read_text())
    config["num_hidden_layers"] += 1
    (broken / "config.json").write_text(json.dumps(config))
    with pytest.raises(CheckpointError, match="weights are missing"):
        QuestionLLM(broken, dtype="float32", device="cpu")
