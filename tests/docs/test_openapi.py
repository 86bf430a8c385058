"""The OpenAPI document says what the routes take and how they fail."""

import json
import re

from service.http.openapi import tree


def test_openapi_lists_every_error_status_for_every_route(app):
    """Each route may answer with each status of the error tree, as problem+json."""
    document = app.openapi()
    for methods in document["paths"].values():
        for route in methods.values():
            for status in {error.status for error in tree()}:
                content = route["responses"][str(status)]["content"]["application/problem+json"]
                assert content["schema"]["$ref"].endswith("/Problem")
                codes = {error.code for error in tree() if error.status == status}
                assert codes == set(route["responses"][str(status)]["description"].split(", "))


def test_openapi_describes_the_bodies_of_both_post_routes(app):
    """JSON, and the same JSON in the part `request` of a multipart body."""
    document = app.openapi()
    for path, model in (("/score", "ScoreRequest"), ("/questions", "QuestionsRequest")):
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
