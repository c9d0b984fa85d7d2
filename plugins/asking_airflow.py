"""How a form of the page asks Airflow's own API: with the person's own token, from this page alone.

So Airflow's rights and its audit log hold as if the person had done it in Airflow.
"""
# No `from __future__ import annotations`: FastAPI reads the annotations of those who use this.

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any
from urllib.parse import parse_qsl, urlsplit

import httpx
from airflow_interfaces import application_of_airflow, credentials_of

if TYPE_CHECKING:
    from fastapi import Request

_ANSWER_CHARACTERS = 300
_FORM_BYTES = 16_384


async def form_of(request: "Request") -> dict[str, str]:
    """Return the fields of a form that a browser sent from a page of this very address.

    Raises:
        HTTPException: it came from elsewhere, or is no form of this page.
    """
    from fastapi import HTTPException

    origin = request.headers.get("origin")
    site = request.headers.get("sec-fetch-site", "same-origin")
    is_ours = origin is None or urlsplit(origin).netloc == request.headers.get("host")
    if site != "same-origin" or not is_ours:
        raise HTTPException(403, "This is done from this page's own form only")
    size = request.headers.get("content-length", "")  # the server reads no more; looked at first,
    if not size.isdecimal() or int(size) > _FORM_BYTES:  # for nobody has to be logged in to send it
        raise HTTPException(413, "That is no form of this page")
    return dict(parse_qsl((await request.body()).decode("utf-8", "replace")))


async def ask(request: "Request", method: str, path: str, body: Mapping[str, Any]) -> str:
    """Ask Airflow in the person's name; return why it refuses, empty if it does not."""
    transport = httpx.ASGITransport(app=application_of_airflow())
    async with httpx.AsyncClient(transport=transport, base_url="http://airflow") as client:
        headers = credentials_of(request)
        answer = await client.request(method, path, json=body, headers=headers)
    if answer.is_success:
        return ""
    try:
        said = answer.json()["detail"]
    except (ValueError, KeyError, TypeError):
        said = answer.text
    return f"({answer.status_code}): {str(said)[:_ANSWER_CHARACTERS]}"
