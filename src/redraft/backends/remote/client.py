"""JSON over HTTP to one server, with a connection pool and a timeout; every failure becomes one sentence.

Requests change nothing on the server, so they are repeated after a failed connection and after a response that the
server is busy or starting.  A request that timed out is not repeated, as the server may still be working on it, nor is
one whose response has started.
"""

from __future__ import annotations

import json
import time
from collections.abc import Generator, Iterator, Mapping
from contextlib import closing, contextmanager, suppress
from typing import Any

import httpx2

from redraft.backends.options import RemoteOptions
from redraft.backends.remote.address import KEY_VARIABLE
from redraft.deadlines import Backoff
from redraft.errors import MissingExtra, ModelError, first_sentence
from redraft.proxies import is_local, needs_package, through

#: Delays and time limit for retrying a server that is busy or unreachable.
RETRIES = Backoff(first=0.1, longest=1.0, patience=1.0)
#: Timeout of connecting in seconds.
CONNECT = 5.0
_BUSY = {429, 502, 503, 504}
_REFUSED = {401, 403}


class Absent(ModelError):
    """The server does not have this route or this model."""


class RemoteClient:
    """Client of one server; thread-safe.

    Args:
        engine: the server's software, for messages.
        server: scheme, host and port.
        key: API key, sent as a bearer token; empty for none.
        options: timeout and slots; there is a connection per slot.
        transport: replaces the network in tests.
    """

    def __init__(
        self,
        engine: str,
        server: str,
        key: str,
        options: RemoteOptions,
        transport: httpx2.BaseTransport | None = None,
    ) -> None:
        self._name, self._timeout = f"the {engine} server at {server}", options.timeout
        self._way = "" if transport else through(server)
        try:
            self._http = httpx2.Client(
                base_url=server,
                headers={"Authorization": f"Bearer {key}"} if key else {},
                timeout=httpx2.Timeout(options.timeout, connect=min(CONNECT, options.timeout), pool=None),
                limits=httpx2.Limits(max_connections=options.slots, max_keepalive_connections=options.slots),
                trust_env=not is_local(server),
                transport=transport,
            )
        except ImportError as error:
            raise MissingExtra(needs_package(server, "httpx2[socks]")) from error
        except ValueError as error:
            raise ModelError(f"{self._name} cannot be reached{self._way}: {first_sentence(error)}") from error

    def ask(self, path: str, body: Mapping[str, Any] | None = None) -> Any:
        """Send a GET request, or a POST request with a JSON body, and return the JSON response.

        Raises:
            ModelError: the server cannot be reached, refuses, or does not return JSON.
        """
        answer = self._send(path, body)
        if answer.status_code != 200:
            raise self._refusal(answer)
        return self._parsed(answer.text)

    def stream(self, path: str, body: Mapping[str, Any]) -> Generator[Any, None, None]:
        """Send a POST request and yield the events of the response; closing the generator ends the request.

        Raises:
            ModelError: as in `ask`, or the connection is lost, or the server reports an error.
        """
        with closing(self._send(path, body, stream=True)) as answer, self._failures():
            if answer.status_code != 200:
                answer.read()
                raise self._refusal(answer)
            # Read to the end, so that the connection can be reused.
            for line in answer.iter_lines():
                if line.startswith("data:") and line[5:].strip() != "[DONE]":
                    event = self._parsed(line[5:])
                    if isinstance(event, dict) and "error" in event:
                        raise ModelError(f"{self._name} failed while it answered: {_words(str(event['error']))}")
                    yield event

    def close(self) -> None:
        """Close the connections."""
        self._http.close()

    @contextmanager
    def reading(self, what: str) -> Iterator[None]:
        """Convert exceptions while parsing a response to a `ModelError`, whose message contains ``what``."""
        try:
            yield
        except (LookupError, TypeError, ValueError, AttributeError) as error:
            raise self.malformed(what) from error

    def malformed(self, what: str) -> ModelError:
        """Return the error for a response that lacks something."""
        return ModelError(f"{self._name} gave an answer {what}")

    def _send(self, path: str, body: Mapping[str, Any] | None, stream: bool = False) -> httpx2.Response:
        waits, method = RETRIES.waits(), "GET" if body is None else "POST"
        while True:
            wait = next(waits, None)
            with self._failures():
                try:
                    answer = self._http.send(self._http.build_request(method, path, json=body), stream=stream)
                except httpx2.TransportError as error:
                    if wait is None or isinstance(error, httpx2.TimeoutException):
                        raise
                else:
                    if answer.status_code not in _BUSY or wait is None:
                        return answer
                    answer.close()
            time.sleep(wait)

    @contextmanager
    def _failures(self) -> Iterator[None]:
        try:
            yield
        except httpx2.TimeoutException as error:
            raise ModelError(f"{self._name} did not answer{self._way} within {self._timeout:g} seconds") from error
        except httpx2.TransportError as error:
            raise ModelError(f"{self._name} cannot be reached{self._way}: {first_sentence(error)}") from error

    def _parsed(self, text: str) -> Any:
        try:
            return json.loads(text)
        except ValueError as error:
            raise self.malformed("that is not JSON") from error

    def _refusal(self, answer: httpx2.Response) -> ModelError:
        if answer.status_code in _REFUSED:
            return ModelError(
                f"{self._name} refuses the API key{self._way} (HTTP {answer.status_code}): "
                f"put the right one into {KEY_VARIABLE}"
            )
        kind = Absent if answer.status_code in (404, 405) else ModelError
        text = answer.text
        with suppress(ValueError, AttributeError):  # of a JSON object, its message
            found = json.loads(text)
            found = found.get("error", found)
            text = str(found.get("message") or found.get("detail") or text)
        words = _words(text) or answer.reason_phrase
        return kind(f"{self._name} answers HTTP {answer.status_code}{self._way}: {words}")


def _words(text: str) -> str:
    return " ".join(text.split())[:200]
