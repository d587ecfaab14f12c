"""dump-api answers as its OpenAPI document says, whatever is sent to it."""

import asyncio
import traceback
from itertools import product
from pathlib import Path
from typing import Any

import pytest
import schemathesis
from hypothesis import HealthCheck, given, seed, settings
from hypothesis import strategies as st
from schemathesis import GenerationMode
from schemathesis.config import SchemathesisConfig

from common.connections import Execute
from common.pipelines import MakePipeline
from devstack import Server
from integration.dump_api import Api

_EXAMPLES = 50
#: statuses of requests that fit the document: a table need not exist
_ANSWERS = ["2xx", "404", "409", "422", "503"]


@pytest.mark.slow
@pytest.mark.parametrize("source", ["mariadb"], indirect=True)
async def test_schemathesis_finds_nothing(
    make_pipeline: MakePipeline, source: Server, schema: str, execute: Execute, tmp_path: Path
) -> None:
    (tmp_path / "key").write_text("a key")
    keys = [{"name": "k", "scopes": ["read", "write"], "key_file": str(tmp_path / "key")}]
    pipeline = make_pipeline(source, schema, dumps={"api_keys": keys, "requests_per_second": 1_000_000})
    await asyncio.to_thread(pipeline.start_all, "publisher", "reader", "dump-api")
    await execute("CREATE TABLE t (id INT PRIMARY KEY)")
    await execute("INSERT INTO t VALUES (1)")
    url, headers = pipeline.url("dump-api"), {"Authorization": "Bearer a key"}
    async with Api(base_url=url, headers=headers) as api:
        manifest = await api.take_dump()
    known = {"dump": manifest["id"], "name": manifest["files"][0]["name"]}
    await asyncio.to_thread(search, url, headers, known)


def search(url: str, headers: dict[str, str], known: dict[str, str]) -> None:
    """Send requests of every operation; the ids of half of them exist."""
    checks = {"positive_data_acceptance": {"expected-statuses": _ANSWERS}}
    config = SchemathesisConfig.from_dict({"checks": checks})
    loaded = schemathesis.openapi.from_url(f"{url}/openapi.json", config=config)
    found: list[str] = []
    operations = [result.ok() for result in loaded.get_all_operations()]
    for operation, mode in product(operations, GenerationMode):

        @seed(7)
        @settings(max_examples=_EXAMPLES, deadline=None, database=None, suppress_health_check=list(HealthCheck))
        @given(case=operation.as_strategy(generation_mode=mode), exists=st.booleans())
        def answers_as_described(case: Any, exists: bool) -> None:
            if exists:
                case.path_parameters |= {name: known[name] for name in case.path_parameters if name in known}
            case.call_and_validate(headers=headers, timeout=30)

        try:
            answers_as_described()
        except (AssertionError, ExceptionGroup) as error:
            found.append("".join(traceback.format_exception(error, chain=False)))
    assert not found, "\n".join(found)
