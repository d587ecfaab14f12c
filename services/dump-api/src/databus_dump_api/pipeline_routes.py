"""The route of the pipeline: what a client of dump-api needs to read its changes from Kafka."""

from fastapi import APIRouter, Response

from databus_core.pipeline_description import PipelineDescription, description_of
from databus_core.settings import Settings
from databus_dump_api.bodies import answers, json_response


def router(settings: Settings) -> APIRouter:
    """Make the route of a pipeline."""
    routes = APIRouter(prefix="/v1/pipeline")

    @routes.get("", summary="Show the pipeline", responses=answers({200: PipelineDescription}))
    async def show_pipeline() -> Response:
        """Show the pipeline's name, where Kafka is, and by which rules changes are published: what a client needs."""
        return json_response(description_of(settings))

    return routes
