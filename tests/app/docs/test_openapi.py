"""The OpenAPI document says what the routes take and how they fail."""

import json
import re

from scoregate.runs.plan import texts_in
from service.web.openapi import tree

ANYWHERE = {"200", "400", "408", "413", "500", "503"}
OF_A_BODY = ANYWHERE | {"401", "403", "415", "422", "429", "504"}
STATUSES = {
    "/score": OF_A_BODY,
    "/rank": OF_A_BODY,
    "/compare": OF_A_BODY,
    "/decide": OF_A_BODY - {"504"},
    "/decisions/{id}/label": (OF_A_BODY | {"202", "404"}) - {"200", "504"},
    "/policies": ANYWHERE | {"401", "403"},
    "/questions": OF_A_BODY | {"502"},
    "/questions/{id}": ANYWHERE | {"401", "403", "404"},
    "/models": ANYWHERE | {"401", "403"},
    **dict.fromkeys(
        ("/models/{name}/offload", "/models/{name}/unload"),
        ANYWHERE | {"401", "403", "404", "409", "422", "502"},
    ),
    "/models/{name}/load": (OF_A_BODY | {"404", "409", "502"}) - {"504"},
    "/health": ANYWHERE | {"401", "403"},
    "/metrics": ANYWHERE | {"401", "403"},
    "/livez": ANYWHERE,
    "/readyz": ANYWHERE,
}


def operations(document):
    """Path and description of every operation."""
    return [(path, one) for path, methods in document["paths"].items() for one in methods.values()]


def test_openapi_lists_the_statuses_that_each_route_can_have(app):
    """A route that reads a body can fail in more ways than one that reads none."""
    assert STATUSES == {path: set(one["responses"]) for path, one in operations(app.openapi())}


def test_every_error_is_described_with_its_codes(app):
    """As problem+json, each status with the codes of the error tree."""
    for _, operation in operations(app.openapi()):
        for status, answer in operation["responses"].items():
            if int(status) >= 400:
                assert answer["content"]["application/problem+json"]["schema"]["$ref"].endswith("/Problem")
                codes = {error.code for error in tree() if error.status == int(status)}
                assert codes == set(answer["description"].split(", "))


def test_openapi_describes_the_bodies_of_all_post_routes(app):
    """JSON, and the same JSON in the part `request` of a multipart body."""
    document = app.openapi()
    models = {
        "/score": "ScoreRequest",
        "/rank": "RankRequest",
        "/compare": "CompareRequest",
        "/decide": "DecideRequest",
        "/decisions/{id}/label": "LabelRequest",
        "/questions": "QuestionsRequest",
    }
    for path, model in models.items():
        content = document["paths"][path]["post"]["requestBody"]["content"]
        name = content["application/json"]["schema"]["$ref"].removeprefix("#/components/schemas/")
        form = content["multipart/form-data"]["schema"]["properties"]["request"]["$ref"]

        assert model == name
        assert form.endswith(f"/{model}")
        assert document["components"]["schemas"][model]["properties"]


def test_openapi_refers_to_nothing_that_is_missing(app):
    """Every $ref of the document leads somewhere."""
    document = app.openapi()
    references = set(re.findall(r"#/components/schemas/(\w+)", json.dumps(document)))

    assert references <= set(document["components"]["schemas"])


def test_openapi_says_which_options_are_texts(app):
    """The client reads cells of CSV by it."""
    found = texts_in(app.openapi())

    assert {"ocr.text", "vqascore.answer", "vqascore.question", "geneval.tag"} <= found
    assert not {"vqascore.samples", "geneval.include", "dsg.question_set", "gecko.nli_threshold"} & found
