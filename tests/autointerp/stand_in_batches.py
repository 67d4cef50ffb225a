"""The stand-in's message batches: created, polled, listed, and their results in an order of their own."""

import collections
import dataclasses
import datetime
import hashlib
import json
import queue
import re
from typing import Any

from tests.autointerp.replies import Reply, Request, Script, error, json_reply


class Batches:
    """The batches that were created and how the next calls about them go."""

    def __init__(self) -> None:
        self.sent: dict[str, list[Request]] = {}
        self.polls_until_ended = 1
        self.outcomes: dict[str, str] = {}  # custom_id: errored, canceled, expired or missing, where not succeeded
        self.create_reply: Reply | None = None  # to all that try to create one; nothing is created, except that
        self.created_all_the_same = False  # with this the first one is: only its reply is another
        self.results_reply: Reply | None = None  # instead of a batch's results
        self.cut_results = False  # the connection breaks in the middle of them, once
        self.broken_results = False  # no line of them is JSON
        self.tries: queue.Queue[int] = queue.Queue()  # requests of each try to create a batch
        self.polls: queue.Queue[str] = queue.Queue()  # batches asked after
        self._looks: collections.Counter[str] = collections.Counter()

    def reply(self, method: str, path: str, body: Request, script: Script, url: str) -> Reply:
        """To a call of /v1/messages/batches and below."""
        if path == "/v1/messages/batches":
            return self._create(body["requests"]) if method == "POST" else self._list()
        match = re.fullmatch(r"/v1/messages/batches/(\w+)(/results)?", path)
        if not match or match[1] not in self.sent:
            return error(404, "not_found_error", "no such batch")
        if match[2]:
            return self._results(match[1], script)
        self._looks[match[1]] += 1
        self.polls.put(match[1])
        return json_reply(self._batch(match[1], url))

    def _create(self, requests: list[Request]) -> Reply:
        name = f"msgbatch_{len(self.sent) + 1}"
        if not self.create_reply or self.created_all_the_same:
            self.sent[name] = requests
            self.created_all_the_same = False
        self.tries.put(len(requests))
        return self.create_reply or json_reply(self._batch(name, ""))

    def _list(self) -> Reply:
        batches = [self._batch(name, "") for name in reversed(self.sent)]
        return json_reply({"data": batches, "has_more": False, "first_id": None, "last_id": None})

    def _batch(self, name: str, url: str) -> dict[str, Any]:
        ended = self._looks[name] > self.polls_until_ended
        now = datetime.datetime.now(datetime.UTC).isoformat()
        counts = dict.fromkeys(("processing", "succeeded", "errored", "canceled", "expired"), 0)
        counts["succeeded" if ended else "processing"] = len(self.sent[name])
        return {
            "id": name,
            "type": "message_batch",
            "processing_status": "ended" if ended else "in_progress",
            "request_counts": counts,
            "created_at": now,
            "expires_at": now,
            "ended_at": now if ended else None,
            "results_url": f"{url}/v1/messages/batches/{name}/results" if ended else None,
        }

    def _results(self, name: str, script: Script) -> Reply:
        if self.results_reply:
            return self.results_reply
        lines = [self._result(request, script) for request in self.sent[name]]
        lines = [line for line in lines if line["result"]["type"] != "missing"]
        lines.sort(key=lambda line: hashlib.sha256(line["custom_id"].encode()).digest())
        body = b"".join(json.dumps(line).encode() + b"\n" for line in lines)
        reply = Reply(body, headers={"content-type": "application/binary"})
        if self.broken_results:
            return dataclasses.replace(reply, body=b"no result\n")
        if self.cut_results:
            self.cut_results = False
            return dataclasses.replace(reply, cut=len(body) // 2)
        return reply

    def _result(self, request: Request, script: Script) -> dict[str, Any]:
        result: dict[str, Any] = {"type": self.outcomes.get(request["custom_id"], "succeeded")}
        if result["type"] == "succeeded":
            result["message"] = json.loads(script(request["params"]).body)
        elif result["type"] == "errored":
            result["error"] = json.loads(error(400, "invalid_request_error", "too long").body)
        return {"custom_id": request["custom_id"], "result": result}


class AllErrored(dict[str, str]):
    """The outcome of every request of a batch."""

    def get(self, key: str, default: object = None) -> str:
        return "errored"
