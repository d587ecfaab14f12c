"""T24: another replica of the server has the reader's id. The reader ends and says which setting to change."""

import asyncio

from common.pipelines import MakePipeline
from devstack import Server


async def test_t24_a_server_id_that_is_taken_is_a_clear_error(make_pipeline: MakePipeline, source: Server) -> None:
    first, second = (make_pipeline(source, "shop", reader={"server_id": 4711}) for _ in range(2))
    await asyncio.to_thread(first.start_all, "publisher", "reader")
    await asyncio.to_thread(second.start_all, "publisher", "reader")
    await asyncio.to_thread(first.wait_ended, "reader", 30)
    log = first.log("reader").read_text()
    assert "reader.server_id" in log.splitlines()[-1]
    assert "Traceback" not in log
