"""Shared by the imitated APIs: reading bodies, identifying callers, sending errors."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any
from urllib.parse import parse_qs

from pydantic import TypeAdapter
from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import BaseRoute, Route

from redraft.serve.compat.callers import Caller, Callers
from redraft.serve.http import Endpoint, address_of, answering, read_bytes
from redraft.serve.refusals import Refused

_OBJECT = TypeAdapter(dict[str, Any])
#: Source language of requests that name none.
SOURCE = "en"
#: An instruction before the text, such as "Translate into German:".
_INSTRUCTION = re.compile(
    r"(?:(?:(?:please|now|kindly|can|could|you)\W+){0,3}translate\b[^:]{0,500}"
    r"|(?:the )?(?:text|sentence|source|input)(?: to (?:be )?translated?)?):\s*(?=\S)",
    re.IGNORECASE,
)
_TAGS = re.compile(r"\s*<(\w+)>\s*(?P<text>.*?)\s*</\1>\s*", re.DOTALL)
_FENCES = re.compile(r"\s*(```|\"\"\")\s*(?P<text>.*?)\s*\1\s*", re.DOTALL)


async def translate_plain(callers: Callers, request: Request, caller: Caller, texts: Sequence[str]) -> list[str]:
    """Translate texts from callers that add no instructions; text inside a pair of symbols is translated separately."""
    pieces = [_pieces(text) for text in texts]
    sent = [text for each in pieces for text, _ in each]
    found = iter(await callers.replies(caller, sent, request.is_disconnected))
    return ["".join(next(found).text + behind for _, behind in each) for each in pieces]


def _pieces(text: str) -> list[tuple[str, str]]:
    """Split a text at a pair of symbols; each part comes with the symbols that follow it."""
    pair = marked(text)
    if pair is None:
        return [(text, "")]
    context = pair.before.rstrip()
    mark = pair.after.strip()
    context = context.removesuffix(mark)
    words = context.rstrip()
    return [(words, pair.before[len(words) :]), (pair.text, pair.after)]


def routes(paths: Mapping[str, tuple[str, Endpoint]], refuse: Callable[[Refused, int], Response]) -> list[BaseRoute]:
    """Return routes by path; ``refuse`` makes the response to a refusal, given the status of our own API."""
    return [Route(path, answering(endpoint, refuse), methods=[method]) for path, (method, endpoint) in paths.items()]


def refusing(field: str) -> Callable[[Refused, int], Response]:
    """Return what makes the response to a refusal for `routes`: its sentence in a field, and 403 for a wrong key."""
    return lambda refused, status: JSONResponse({field: refused.sentence}, 403 if refused.code == "key" else status)


async def fields(request: Request, lists: Sequence[str] = ()) -> dict[str, Any]:
    """Return the fields of a JSON or form body.

    Args:
        lists: form fields that may be repeated; these become lists.

    Raises:
        Refused: the content type is neither, or the body is malformed.
    """
    body, kind = await read_bytes(request), request.headers.get("content-type", "").partition(";")[0].strip().lower()
    try:
        if kind == "application/x-www-form-urlencoded":
            form = parse_qs(body.decode(), keep_blank_values=True, errors="strict", max_num_fields=1000)
            return {name: values if name in lists else values[-1] for name, values in form.items()}
        if kind == "application/json":
            return dict(_OBJECT.validate_json(body))
    except ValueError:
        raise Refused("protocol", "the body must be a JSON object, or a form, in valid UTF-8") from None
    raise Refused("protocol", "the content type must be application/json or application/x-www-form-urlencoded")


def caller(request: Request, dialect: str, key: str, owner: str, target: str, source: str, *more: str) -> Caller:
    """Identify the caller of a request by API, key, address, user agent and ``more``."""
    address = address_of(request)
    marks = (dialect, owner, key, address, request.headers.get("user-agent", ""), *more)
    return Caller(marks, address, target, source)


@dataclass(frozen=True, slots=True)
class Wrapped:
    """A text and what was sent before and after it; concatenated, they are the original request."""

    before: str
    text: str
    after: str

    @classmethod
    def cut(cls, whole: str, begin: int, end: int) -> Wrapped:
        """Take ``whole[begin:end]``, stripped, as the text."""
        text = whole[begin:end]
        begin += len(text) - len(text.lstrip())
        end = begin + len(text.strip())
        return cls(whole[:begin], whole[begin:end], whole[end:])

    def within(self, before: str, after: str) -> Wrapped:
        """Return the same text with more around it."""
        return Wrapped(before + self.before, self.text, self.after + after)


def marked(sent: str) -> Wrapped | None:
    """Find the text in a pair of symbols (such as emoji) at the end of ``sent``; None if there is no pair."""
    end = len(sent.rstrip())
    begin = end
    while (
        begin and sent[begin - 1] >= "\u2190" and unicodedata.category(sent[begin - 1]) == "So"
    ):  # not the degree sign
        begin -= 1
    mark = sent[begin:end]
    opening = sent.rfind(mark, 0, begin) if mark else -1
    if opening < 0 or not sent[opening + len(mark) : begin].strip():
        return None
    return Wrapped.cut(sent, opening + len(mark), begin)


def instructed(sent: str) -> Wrapped:
    """Find the text in a request to a language model; only the known forms of wrappers are removed."""
    found = Wrapped.cut(sent, 0, len(sent))
    if instruction := _INSTRUCTION.match(found.text):
        found = Wrapped.cut(found.text, instruction.end(), len(found.text)).within(found.before, found.after)
    if pair := marked(found.text):
        return pair.within(found.before, found.after)
    for form in (_TAGS, _FENCES):
        if (match := form.fullmatch(found.text)) and match["text"]:
            return Wrapped.cut(found.text, *match.span("text")).within(found.before, found.after)
    return found
