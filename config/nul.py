"""U+0000 in what a form or an address says: PostgreSQL keeps no text with it, and nobody types it."""

from __future__ import annotations

from collections.abc import Callable

from django.core.exceptions import BadRequest
from django.http import HttpRequest, HttpResponseBase, QueryDict


class NulMiddleware:
    """Answer 400 before anything asks the database; bodies that are no form are their view's."""

    sync_capable = True
    async_capable = False

    def __init__(self, get_response: Callable[[HttpRequest], HttpResponseBase]) -> None:
        self.get_response = get_response

    def __call__(self, request: HttpRequest) -> HttpResponseBase:
        return self.get_response(request)

    def process_view(self, request: HttpRequest, *_: object) -> None:
        # Here, and not above: Django answers what is raised here with its page for 400.
        said = [request.path_info, *_values(request.GET), *_values(request.POST)]
        if any("\0" in text for text in said):
            raise BadRequest("what was sent holds a character (U+0000) that can't be kept")


def _values(fields: QueryDict) -> list[str]:
    return [text for _, values in fields.lists() for text in values]
