"""The routes of the pipeline: what a client needs to read its changes from Kafka, and how far it is."""

from fastapi import APIRouter, Response

from databus_core.pipeline_description import PipelineDescription, description_of
from databus_core.pipeline_status import PipelineStatus
from databus_core.settings import Settings
from databus_dump_api import server_sent
from databus_dump_api.bodies import answers, json_response, schema_of
from databus_dump_api.dumps import DumpManager
from databus_dump_api.overview import Overview, follow, read_overview
from databus_dump_api.shared_read import SharedRead


def router(settings: Settings, dumps: DumpManager) -> APIRouter:
    """Make the routes of a pipeline."""
    routes = APIRouter(prefix="/v1/pipeline")
    overview = SharedRead(lambda: read_overview(settings, dumps))

    @routes.get("", summary="Show the pipeline", responses=answers({200: PipelineDescription}))
    async def show_pipeline() -> Response:
        """Show the pipeline's name, where Kafka is, and by which rules changes are published: what a client needs."""
        return json_response(description_of(settings))

    @routes.get("/status", summary="Show how far the pipeline is", responses=answers({200: PipelineStatus}))
    async def show_status() -> Response:
        """Show what `databus status` shows. It is read at most once a second, for all clients together.

        A section that cannot be read within 5 s is null, and `errors` says why.
        """
        return json_response((await overview.next()).status)

    @routes.get(
        "/events",
        summary="Follow the pipeline",
        response_class=Response,
        responses=answers({})
        | {
            200: {
                "content": {server_sent.MEDIA_TYPE: {"itemSchema": schema_of(Overview)}},
                "description": "Server-sent events without an end; the data of each is an Overview",
            }
        },
    )
    async def follow_pipeline() -> Response:
        """Follow the pipeline and its dumps: an event `overview` once a second, less often if reading takes longer."""
        return server_sent.respond(follow(overview))

    return routes
