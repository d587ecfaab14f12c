"""The OpenAPI document of dump-api, and the page made from it."""

from databus_core.manifest import Manifest
from databus_dump_api.examples import EXAMPLES
from databus_dump_api.field_comments import comments
from reference import rest

DOCUMENT = rest.openapi()
OPERATIONS = [(path, each) for path, methods in DOCUMENT["paths"].items() for each in methods.values()]


def test_the_reference_is_generated_from_the_openapi_document() -> None:
    path, text = rest.page()
    assert path.read_text() == text, "run `make docs`"


def test_every_request_needs_a_key_and_answers_errors_with_problem_documents() -> None:
    for path, operation in OPERATIONS:
        assert path.startswith("/v1/")
        assert operation["security"][0]["apiKey"] in (["read"], ["write"]), path
        assert {"401", "403", "429"} <= operation["responses"].keys(), path
        for status, answer in operation["responses"].items():
            if int(status) >= 400:
                assert list(answer["content"]) == ["application/problem+json"], (path, status)


def test_fields_have_the_comments_of_the_source_and_bodies_have_examples() -> None:
    schemas = DOCUMENT["components"]["schemas"]
    fields = schemas["Manifest"]["properties"]
    assert fields["error"]["description"] == "why the dump has no result"
    assert fields["kafka_offsets"]["description"].endswith("it is read from its beginning.")
    assert "description" not in fields["id"]
    assert len(comments(Manifest)) > 10
    for name in EXAMPLES:
        assert schemas[name]["examples"]
