"""The calls of the Message Batches API."""

import contextlib
import re
from collections.abc import AsyncIterator, Iterator
from typing import Any

import anthropic
import httpx2
from anthropic.types.messages import MessageBatch

from neuroscope_jax.autointerp.batch_state import BatchStatus
from neuroscope_jax.autointerp.client import Client, Stop

UPLOAD = 600.0  # seconds that sending a batch may take
LISTED = 100  # of the latest batches
RETRIED = (408, 409, 429)


class Unreachable(Exception):
    """The API cannot be reached now; what was asked may have been done all the same."""


class BatchCalls:
    """Over a client's connections. All raise Stop for what no repetition helps against, Unreachable for the rest."""

    def __init__(self, client: Client) -> None:
        self._client = client
        self._batches = client.api.messages.batches

    async def create(self, requests: list[Any]) -> BatchStatus:
        """Never repeated by the library: a try whose answer got lost may have created a batch that is paid for."""
        api = self._client.api.with_options(max_retries=0, timeout=UPLOAD)
        with self._told():
            return self._status(await api.messages.batches.create(requests=requests))

    async def status(self, name: str) -> BatchStatus:
        with self._told(name):
            return self._status(await self._batches.retrieve(name))

    async def latest(self) -> list[BatchStatus]:
        """Of the key's workspace, whoever made them."""
        with self._told():
            return [self._status(batch) for batch in (await self._batches.list(limit=LISTED)).data]

    async def results(self, name: str) -> AsyncIterator[str]:
        """The lines of an ended batch, in no order."""
        with self._told(name):
            async with self._batches.with_streaming_response.results(name) as response:
                async for line in response.iter_lines():
                    yield line

    @contextlib.contextmanager
    def _told(self, name: str = "") -> Iterator[None]:
        try:
            yield
        except anthropic.NotFoundError:
            raise Stop(
                f"the Anthropic API answered 404 for {f'message batch {name}' if name else 'message batches'}: it is "
                "known to another key's workspace only, or its results are gone"
            ) from None
        except anthropic.APIStatusError as error:
            told = self._client.told(error)
            if error.status_code in RETRIED or error.status_code >= 500:
                raise Unreachable(told) from None
            raise Stop(f"the Anthropic API answered {told}") from None
        except (ValueError, RecursionError):  # broken JSON
            raise Unreachable(self._foreign()) from None
        except (anthropic.APIConnectionError, httpx2.HTTPError):
            raise Unreachable(f"no connection to {self._client.api.base_url.host}") from None

    def _status(self, batch: object) -> BatchStatus:
        # A proxy's HTML page, say; the id is logged as it is.
        if not isinstance(batch, MessageBatch) or not re.fullmatch(r"[\w-]{1,100}", str(batch.id), re.ASCII):
            raise Unreachable(self._foreign())
        counts = batch.request_counts
        count = counts.processing + counts.succeeded + counts.errored + counts.canceled + counts.expired
        return BatchStatus(batch.id, batch.created_at, count, batch.processing_status == "ended")

    def _foreign(self) -> str:
        return f"{self._client.api.base_url.host} answers, but not as the Anthropic API"
