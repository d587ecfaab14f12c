"""The routes of backfills. Requests and states are in Kafka, and are read for each request."""

from http import HTTPStatus
from typing import Annotated

from fastapi import APIRouter, Depends, Path, Request, Response
from pydantic import BaseModel, ConfigDict, Field

from databus_changes.backfill_requests import change, request
from databus_changes.backfill_tables import MAX_WHERE, BackfillRequest
from databus_core.backfill_status import BackfillList, BackfillStatus, newest_first, status_of
from databus_core.errors import UnknownBackfill
from databus_core.kafka_table_states import read_states
from databus_core.settings import Settings, TablePattern
from databus_core.table_states import TableStates, Wanted
from databus_dump_api.bodies import MAX_PATTERNS, IdempotencyKey, answers, json_response, require_json
from databus_dump_api.idempotency import IdempotentRequests


class NewBackfills(BaseModel):
    """Which tables to load, and how."""

    model_config = ConfigDict(extra="forbid")

    tables: Annotated[list[TablePattern], Field(min_length=1, max_length=MAX_PATTERNS)] = Field(
        description="`schema.table` patterns with `*` and `?`", examples=[["shop.orders"], ["shop.*"]]
    )
    where: Annotated[str, Field(max_length=MAX_WHERE)] = Field(
        default="", description="SQL condition of the rows to load; by default all rows", examples=["id > 1000"]
    )
    clean: bool = Field(default=False, description="publish a TRUNCATE first, so that consumers empty their table")
    output: str = Field(default="", description="only this output of `publisher.routes`; by default all of the table")
    any_size: bool = Field(
        default=False,
        description="also load a table without a usable key that is larger than `backfill.keyless_limit`",
    )


class BackfillChange(BaseModel):
    """What a backfill has to do."""

    model_config = ConfigDict(extra="forbid")

    wanted: Wanted = Field(description="`run` resumes a paused backfill; `cancel` is final")


BackfillId = Annotated[str, Path(description="id of a backfill", examples=["20261123T211500Z-3f2a91c0"])]


def router(requests: IdempotentRequests, settings: Settings) -> APIRouter:
    """Make the routes of a pipeline."""
    routes = APIRouter(prefix="/v1/backfills")

    @routes.post(
        "",
        status_code=HTTPStatus.ACCEPTED,
        summary="Request backfills",
        responses=answers({202: BackfillList}, 409, 415, 422, 503),
        dependencies=[Depends(require_json)],
    )
    async def request_backfills(http: Request, body: NewBackfills, idempotency_key: IdempotencyKey = None) -> Response:
        """Request a backfill of each table that matches a pattern: of all of them, or of none if anything is wrong.

        Each line of an error's `detail` is one fault. With an `Idempotency-Key` that was sent before, the answer has
        the backfills that were requested then: 422 if the body was another one, 409 while that request is being
        handled.
        """
        new = TableStates()

        async def create() -> list[str]:
            new.backfills.update({each.id: each for each in await request(settings, BackfillRequest(**wanted))})
            return list(new.backfills)

        wanted = body.model_dump()
        ids = await requests.once(idempotency_key, http.state.client, ["backfills", wanted], create)
        states = new if new.backfills else (await read_states(settings))[0]
        found = [each for each in newest_first(states) if each.id in ids]
        return json_response(BackfillList(found), HTTPStatus.ACCEPTED)

    @routes.get("", summary="List all backfills", responses=answers({200: BackfillList}, 503))
    async def list_backfills() -> Response:
        """List all backfills in any state, the newest first."""
        states, _ = await read_states(settings)
        return json_response(BackfillList(newest_first(states)))

    @routes.get("/{backfill}", summary="Show a backfill", responses=answers({200: BackfillStatus}, 404, 503))
    async def show_backfill(backfill: BackfillId) -> Response:
        """Show what was requested, and how far the backfill has come."""
        states, _ = await read_states(settings)
        if found := states.backfills.get(backfill):
            return json_response(status_of(states, found))
        raise UnknownBackfill(f"there is no backfill {backfill}")

    @routes.put(
        "/{backfill}",
        summary="Pause, resume or cancel a backfill",
        responses=answers({200: BackfillStatus}, 404, 409, 415, 422, 503),
        dependencies=[Depends(require_json)],
    )
    async def change_backfill(backfill: BackfillId, body: BackfillChange) -> Response:
        """Make a backfill that has not ended run, pause or be cancelled. The reader does it; `state` shows when."""
        (changed,) = await change(settings, body.wanted, ids=[backfill])
        states, _ = await read_states(settings)
        return json_response(status_of(states, changed))

    return routes
