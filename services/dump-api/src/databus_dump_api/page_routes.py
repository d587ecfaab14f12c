"""The operations page: files of this package, which need no API key. What they show comes from the API, which does."""

from pathlib import Path
from typing import Any

from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import BaseRoute, Mount, Route
from starlette.staticfiles import StaticFiles

_FOLDER = Path(__file__).parent / "page"
#: nothing comes from another site, no script or style is inline, and no text becomes HTML
_POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; connect-src 'self'; base-uri 'none'; "
    "form-action 'none'; frame-ancestors 'none'; require-trusted-types-for 'script'"
)
_HEADERS = {
    "Content-Security-Policy": _POLICY,
    "Referrer-Policy": "no-referrer",
    "X-Content-Type-Options": "nosniff",
    "Cache-Control": "no-cache",  # kept, but compared with ours by its ETag at each use: a new version is used at once
}


class _Files(StaticFiles):
    """Answers with the headers."""

    def file_response(self, *args: Any, **kwargs: Any) -> Response:
        """Answer with a file or, if the client has it already, with 304."""
        response = super().file_response(*args, **kwargs)
        response.headers.update(_HEADERS)
        return response


def page_routes() -> list[BaseRoute]:
    """Return the routes of the page `/` and of its files."""
    folder = _Files(directory=_FOLDER)

    async def index(request: Request) -> Response:
        return await folder.get_response("index.html", request.scope)

    return [Route("/", index), Mount("/page", folder)]
