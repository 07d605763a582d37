"""The application: all routes, the page, and what is told of the server itself."""

from __future__ import annotations

from collections.abc import AsyncIterator
from typing import Annotated, Any

from fastapi import FastAPI, Query, Request, Response
from fastapi.openapi.utils import get_openapi
from fastapi.responses import StreamingResponse
from starlette.exceptions import HTTPException
from starlette.types import Receive, Scope, Send

import rosenblatt
from rosenblatt.errors import (
    LimitExceeded,
    RosenblattError,
    UnknownModel,
)
from rosenblatt.serve import learning, management, shapes
from rosenblatt.serve.learning import learn, predict
from rosenblatt.serve.metrics import CONTENT_TYPE
from rosenblatt.serve.page_files import page_file, page_files
from rosenblatt.serve.problem_details import from_error, problem
from rosenblatt.serve.routing import make_router, route
from rosenblatt.serve.service import (
    Service,
    answer,
    service_of,
    summarize,
)

router = make_router()


@route(
    router, "GET", "/events", tags=["models"], response_class=Response,
    responses={200: {"content": {"text/event-stream": {"schema": {"type": "string"}}}, "description": "Events."}},
)  # fmt: skip
async def events(
    request: Request, model: Annotated[str | None, Query(description="Tell of this model only.")] = None
) -> Response:
    """Tell of every model that changes, as server-sent events."""
    service = service_of(request)
    if service.feed.streams >= service.limits.streams:
        raise LimitExceeded("streams", service.feed.streams + 1, service.limits.streams)
    wanted = request.query_params.get("model")
    if wanted is not None and wanted not in service.models:
        raise UnknownModel(wanted)

    def tell(name: str) -> dict[str, object] | None:
        found = service.models.get(name)
        return None if found is None else summarize(found)

    async def stream() -> AsyncIterator[bytes]:
        async for event in service.feed.listen(sorted(service.models) if wanted is None else [wanted], tell, wanted):
            yield event

    return StreamingResponse(stream(), media_type="text/event-stream")


@route(
    router, "GET", "/metrics", tags=["server"], response_class=Response,
    responses={200: {"content": {"text/plain": {"schema": {"type": "string"}}}, "description": "Numbers for Prometheus."}},
)  # fmt: skip
async def show_metrics(request: Request) -> Response:
    """Show numbers about the server, for Prometheus."""
    service = service_of(request)
    metrics = service.metrics
    for name, model in service.models.items():
        metrics.model_bytes.set(model.published.learner.memory(), name)
    metrics.log_bytes.set(service.writer.log.disk_bytes())
    metrics.queue_bytes.set(service.writer.queued_bytes)
    metrics.open_streams.set(service.feed.streams)
    metrics.learning_paused.set(service.writer.paused is not None)
    return Response(metrics.render(), media_type=CONTENT_TYPE)


@route(router, "GET", "/healthz", response_model=shapes.Status, tags=["server"])
async def health(request: Request) -> Response:
    """Say that the process answers."""
    return answer({"status": "ok"})


@route(
    router,
    "GET",
    "/readyz",
    response_model=shapes.Status,
    tags=["server"],
    responses={503: {"model": shapes.Status, "description": "It does not learn."}},
)
async def ready(request: Request) -> Response:
    """Say whether the server predicts and learns."""
    service = service_of(request)
    if service.stopping:
        return answer({"status": "stopping"}, 503)
    if service.writer.paused:
        return answer({"status": "not learning", "reason": service.writer.paused}, 503)
    return answer({"status": "ok"})


@route(router, "GET", "/", response_class=Response, include_in_schema=False)
async def page(request: Request) -> Response:
    """Return the page."""
    return page_file(page_files("rosenblatt.serve"), "index.html")


@route(router, "GET", "/page/{file}", response_class=Response, include_in_schema=False)
async def page_part(request: Request, file: str) -> Response:
    """Return a file of the page."""
    return page_file(page_files("rosenblatt.serve"), request.path_params["file"])


ROUTERS = (learning.router, management.router, router)


async def not_found(request: Request, error: Exception) -> Response:
    """Answer what no route answers."""
    status = error.status_code if isinstance(error, HTTPException) else 500
    known = {404: ("not-found", "There is nothing here"), 405: ("method-not-allowed", "This cannot be done here")}
    kind, title = known.get(status, ("bad-request", "The request cannot be fulfilled"))
    asked = f"{request.method} {request.url.path[:200]}"
    detail = f"there is no route {asked}; GET /openapi.json lists them" if status == 404 else asked
    answered = problem(status, kind, title, detail)
    if isinstance(error, HTTPException):
        answered.headers.update(error.headers or {})
    return answered


def make_app(service: Service) -> FastAPI:
    """Return the application.

    Parameters
    ----------
    service : Service
        What the routes work with.

    Returns
    -------
    app : FastAPI
    """
    app = FastAPI(
        title="rosenblatt",
        version=rosenblatt.__version__,
        description="A server of models that learn one example at a time and lose nothing.",
        docs_url=None,  # these pages load scripts from elsewhere
        redoc_url=None,
    )
    app.state.service = service
    for part in ROUTERS:
        app.include_router(part)
    app.add_exception_handler(HTTPException, not_found)
    document = describe_routes(app)
    app.openapi = lambda: document  # type: ignore[method-assign]  # what FastAPI says to do
    return app


def describe_routes(app: FastAPI) -> dict[str, Any]:
    """Return the OpenAPI document: that of FastAPI, with our problem details instead of its own errors."""
    document = get_openapi(title=app.title, version=app.version, description=app.description, routes=app.routes)
    schemas = document["components"]["schemas"]
    schemas["Problem"] = shapes.Problem.model_json_schema()
    for name in ("HTTPValidationError", "ValidationError"):
        schemas.pop(name, None)
    for operations in document["paths"].values():
        for operation in operations.values():
            operation["responses"].pop("422", None)
    return document


class HotRoutes:
    """An ASGI application that calls the routes to learn and to predict directly, and leaves all else to another one.

    The layers of a framework take longer than predicting an example.

    Parameters
    ----------
    app : FastAPI
        The application with all routes.
    """

    def __init__(self, app: FastAPI):
        self._app = app
        self._hot = {"learn": learn, "predict": predict}

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        parts: list[str] = scope["path"].split("/") if scope["type"] == "http" and scope["method"] == "POST" else []
        function = self._hot.get(parts[3]) if len(parts) == 4 and parts[1] == "models" else None
        if function is None:
            await self._app(scope, receive, send)
            return
        scope["app"], scope["path_params"] = self._app, {"name": parts[2]}
        try:
            response = await function(Request(scope, receive), "", None)
        except RosenblattError as error:
            response = from_error(error)
        await response(scope, receive, send)
