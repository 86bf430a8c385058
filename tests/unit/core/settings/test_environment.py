"""Tables and lists in variables, as JSON."""

import pytest

from service.core.settings import SettingsError
from service.wiring.load import load_settings

LLM = '{"family": "openai", "base_url": "http://127.0.0.1:9/v1", "model": "m"}'


def settings(**variables):
    return load_settings(None, {f"SCOREGATE_{name}": value for name, value in variables.items()})


def test_a_table_can_be_given_as_json():
    """A setting that is a table, a model's table, and a table of tables."""
    read = settings(
        MODELS__QUESTIONS=LLM,
        MODELS__QUESTIONS__EXTRA_BODY='{"top_k": 1, "stop": ["x"]}',
        MODELS__VQA__BATCH='{"max_items": 3}',
        COMPOSITES='{"reward": {"vqascore": {"weight": 1}}}',
        SERVER='{"port": 9000}',
    )

    assert {"top_k": 1, "stop": ["x"]} == read.models["questions"].extra_body
    assert (3, 9000) == (read.models["vqa"].batch.max_items, read.server.port)
    assert ["reward"] == list(read.composites)
    assert (
        {}
        == settings(MODELS__QUESTIONS=LLM, MODELS__QUESTIONS__EXTRA_BODY="{}").models["questions"].extra_body
    )


def test_a_list_can_be_given_as_json():
    """Of texts, for example."""
    assert ["JPEG", "PNG"] == list(settings(IMAGES__FORMATS='["JPEG", "PNG"]').images.formats)


def test_a_table_replaces_the_profiles_and_single_values_stand_over_it():
    """In whatever order the variables are."""
    read = settings(MODELS__QUESTIONS__TIMEOUT_S="5", MODELS__QUESTIONS=LLM, MODELS__QUESTIONS__MODEL="n")

    assert ("openai", 5, "n") == tuple(
        getattr(read.models["questions"], name) for name in ("family", "timeout_s", "model")
    )


def test_a_scalar_is_never_read_as_json():
    """A question template may be `{}`, which is JSON too."""
    read = settings(
        MODELS__VQA='{"family": "openai_vlm", "base_url": "http://127.0.0.1:9/v1", "model": "m"}',
        MODELS__VQA__QUESTION="{}",
        SERVER__HOST='["x"]',
    )

    assert ("{}", '["x"]') == (read.models["vqa"].question, read.server.host)


@pytest.mark.parametrize(
    ("variables", "named"),
    [
        ({"MODELS__VQA__BATCH": '{"max_items": '}, "SCOREGATE_MODELS__VQA__BATCH: not JSON: .* column"),
        ({"MODELS__VQA__BATCH": "many"}, "SCOREGATE_MODELS__VQA__BATCH: not JSON"),
        ({"MODELS__VQA__BATCH": "[" * 100_000}, "SCOREGATE_MODELS__VQA__BATCH: not JSON"),
        ({"MODELS__VQA": "x", "MODELS__VQA__BATCH": "{}"}, "SCOREGATE_MODELS__VQA: not JSON"),
        ({"MODELS__VQA__BATCH": "[1]"}, r"models\.vqa\.batch: "),
        ({"MODELS__VQA__BATCH": '{"max_itmes": 3}'}, r"models\.vqa\.batch\.max_itmes: "),
        ({"MODELS__VQA__BATCH": '"{}"'}, r"models\.vqa\.batch: "),
        ({"SERVER": "7"}, "server: "),
    ],
)
def test_wrong_json_is_one_line_that_names_the_variable(variables, named):
    """And right JSON that is no such table names the setting."""
    with pytest.raises(SettingsError, match=named) as wrong:
        settings(**variables)
    assert "\n" not in str(wrong.value)


@pytest.mark.parametrize(
    ("variables", "told"),
    [
        ({"SERVER__PORT": "x"}, r"^SCOREGATE_SERVER__PORT: server\.port: Input should be a valid integer"),
        ({"IMAGES__FORMATS": '["PNX"]'}, r"^SCOREGATE_IMAGES__FORMATS: images\.formats: PNX: not among"),
        ({"SERVER": '{"port": -1}'}, r"^SCOREGATE_SERVER: server\.port: "),
    ],
    ids=["scalar", "list", "table"],
)
def test_a_wrong_value_names_the_variable_and_not_the_profile(variables, told):
    """Whoever reads it looks in the right place."""
    with pytest.raises(SettingsError, match=told):
        settings(**variables)


def test_names_that_kubernetes_adds_are_not_looked_at():
    """Of a Service called `scoregate`; a variable without a table is ours only where it is a table."""
    read = settings(PORT="tcp://10.0.0.1:8000", SERVICE_HOST="10.0.0.1", PORT_8000_TCP_ADDR="10.0.0.1")

    assert 8000 == read.server.port
