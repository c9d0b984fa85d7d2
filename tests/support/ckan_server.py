"""An HTTP server that speaks the part of CKAN's API that portals use, with faults on demand."""

from __future__ import annotations

import json
import threading
from collections import defaultdict
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from werkzeug.serving import make_server
from werkzeug.wrappers import Request, Response

Json = dict[str, Any]


class CkanServer:
    """Datasets and resources in memory.

    `faults` holds, by action, what happens to its next calls: `late` (done, but the answer never
    comes), `500` (not done), `409` (made by somebody else a moment before), `other bytes` (an
    upload is kept as something else).
    """

    def __init__(self) -> None:
        self.datasets: dict[str, Json] = {}
        self.resources: dict[str, Json] = {}
        self.contents: dict[str, bytes] = {}
        self.calls: list[str] = []
        self.faults: defaultdict[str, list[str]] = defaultdict(list)
        self.address = ""
        self._over = threading.Event()
        self._lock = threading.Lock()

    @contextmanager
    def serving(self) -> Iterator[CkanServer]:
        server = make_server("127.0.0.1", 0, self._answer, threaded=True)
        self.address = f"http://127.0.0.1:{server.port}"
        thread = threading.Thread(target=server.serve_forever, daemon=True)
        thread.start()
        try:
            yield self
        finally:
            self._over.set()
            server.shutdown()
            thread.join()

    @Request.application
    def _answer(self, request: Request) -> Response:
        if request.path.startswith("/download/"):
            content = self.contents.get(request.path.rpartition("/")[2])
            return Response(content, 200 if content is not None else 404)
        action = request.path.rpartition("/")[2]
        values = request.get_json() if request.is_json else dict(request.form)
        upload = request.files["upload"].read() if "upload" in request.files else None
        with self._lock:
            self.calls.append(action)
            fault = self.faults[action].pop(0) if self.faults[action] else None
            if fault == "500":
                return Response("gateway", 500)
            status, result = getattr(self, f"_{action}")(values, upload, fault)
            if fault == "409":
                status, result = getattr(self, f"_{action}")(values, upload, None)
        if fault == "late":
            self._over.wait()
        told = {"success": True, "result": result}
        if status != 200:
            told = {"success": False, "error": {"__type": result}}
        return Response(json.dumps(told), status, mimetype="application/json")

    def _package_show(self, values: Json, *_: object) -> tuple[int, Any]:
        dataset = next(
            (
                candidate
                for candidate in self.datasets.values()
                if values["id"] in (candidate["id"], candidate["name"])
            ),
            None,
        )
        return (200, dataset) if dataset else (404, "Not Found Error")

    def _package_create(self, values: Json, *_: object) -> tuple[int, Any]:
        if values["name"] in self.datasets:
            return 409, "Validation Error"
        made = values | {"id": f"id-of-{values['name']}"}
        self.datasets[values["name"]] = made
        return 200, made

    def _package_patch(self, values: Json, *_: object) -> tuple[int, Any]:
        status, dataset = self._package_show(values)
        if status == 200:
            dataset.update(values)
        return status, dataset

    def _resource_show(self, values: Json, *_: object) -> tuple[int, Any]:
        resource = self.resources.get(values["id"])
        return (200, resource) if resource else (404, "Not Found Error")

    def _resource_create(
        self, values: Json, upload: bytes | None, fault: str | None
    ) -> tuple[int, Any]:
        if values["id"] in self.resources:
            return 409, "Validation Error"
        if upload is not None:
            values["url"] = f"{self.address}/download/{values['id']}"
            self.contents[values["id"]] = b"lie" if fault == "other bytes" else upload
        self.resources[values["id"]] = values
        return 200, values
