"""How a route is declared. The signature of its function is what OpenAPI shows; the function is called with the request
alone. Bodies are parsed by `state.py`, which takes a fraction of the time that generic validation takes and tells which
row is wrong."""

from collections.abc import Awaitable, Callable, Coroutine
from inspect import signature
from typing import Annotated, Any

from fastapi import APIRouter, Header, Query, Request, Response
from fastapi import Path as InPath
from fastapi.routing import APIRoute

from rosenblatt.errors import (
    RosenblattError,
)
from rosenblatt.serve.problem_details import from_error
from rosenblatt.serve.wire import JSON_LINES, NAME

Endpoint = Callable[..., Awaitable[Response]]
Handler = Callable[[Request], Coroutine[Any, Any, Response]]
ModelName = Annotated[str, InPath(pattern=f"^{NAME}$", description="The name of a model.", examples=["spam"])]
At = Annotated[int | None, Query(ge=1, description="The state after this entry of the log; by default the newest.")]
Key = Annotated[str | None, Header(alias="Idempotency-Key", description="A request with the same key is learned once.")]
_PROBLEM = {"application/problem+json": {"schema": {"$ref": "#/components/schemas/Problem"}}}
PROBLEMS: dict[int | str, dict[str, Any]] = {
    "4XX": {"description": "The request cannot be fulfilled.", "content": _PROBLEM},
    "5XX": {"description": "The server cannot fulfil it now.", "content": _PROBLEM},
}


class DirectRoute(APIRoute):
    """A route whose function is called with the request alone, and whose errors become problem details."""

    def get_route_handler(self) -> Handler:
        endpoint: Callable[..., Awaitable[Response]] = self.endpoint
        shown = (None,) * (len(signature(endpoint).parameters) - 1)  # what OpenAPI shows, and the function does not use

        async def handle(request: Request) -> Response:
            try:
                return await endpoint(request, *shown)
            except RosenblattError as error:
                return from_error(error)

        return handle


def make_router() -> APIRouter:
    """Return a router without routes."""
    return APIRouter(route_class=DirectRoute)


def route(router: APIRouter, method: str, path: str, **options: Any) -> Callable[[Endpoint], Endpoint]:
    """Declare a route of a router: what it answers, and what OpenAPI says about it."""

    def declare(function: Endpoint) -> Endpoint:
        summary, _, description = (function.__doc__ or "").partition("\n")
        options.setdefault("responses", {}).update(PROBLEMS)
        router.add_api_route(
            path, function, methods=[method], summary=summary.strip().rstrip("."), description=description.strip(),
            operation_id=function.__name__, **options,
        )  # fmt: skip
        return function

    return declare


def lines_too(shape: str) -> dict[str, Any]:
    """Return what OpenAPI says of a body that may also be JSON lines."""
    return {"requestBody": {"content": {JSON_LINES: {"schema": {"type": "string", "description": f"One {shape} a line."}}}}}
