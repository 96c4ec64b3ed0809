"""OpenAI's chat completions, completions, responses and models.

A model that follows instructions gets the messages through its own chat template, as they are, and its answer is
returned as it is.  A model that only translates takes the target language from the model's name, and the text from the
last message of the user; nothing is guessed from words.  For tools that can do neither, the operator describes their
prompt (`pattern_of`).
"""

from __future__ import annotations

import asyncio
import codecs
import json
import re
import secrets
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from functools import partial
from typing import Any, Literal, TypeAlias, TypeVar

from pydantic import Field
from starlette.requests import Request
from starlette.responses import JSONResponse, Response, StreamingResponse
from starlette.routing import BaseRoute

from redraft.engine.chat import Answered
from redraft.errors import OptionError
from redraft.protocol.codes import Refused
from redraft.serve.http.compat.dialect import SOURCE, Body, fields, routes, translated
from redraft.serve.http.endpoints import Lenient, address_of, bearer, language_of, while_connected
from redraft.serve.sessions.hub import Hub

B = TypeVar("B", bound=Body)

#: Error code -> OpenAI's error type.
_TYPES = {"limit": "requests"} | dict.fromkeys(("capacity", "draining", "engine", "translation"), "server_error")
_CODES = {"key": "invalid_api_key", "limit": "rate_limit_exceeded", "missing": "model_not_found"}
#: Error message for a request that does not say into which language.
ONLY_TRANSLATES = (
    "this model only translates: the model's name must say the target, as in {example!r}, and the last user message is "
    "the text"
)
#: Receives a piece of the answer.
Hear: TypeAlias = Callable[[bytes], None]


class ContentPart(Lenient):
    """A part of a message; only text."""

    type: Literal["text", "input_text", "output_text"] = "text"
    text: str = ""


class ChatMessage(Lenient):
    """A message of the chat."""

    role: str = "user"
    content: list[ContentPart] | str | None = None

    @property
    def turn(self) -> tuple[str, str]:
        """The role as chat templates know it, and the text; parts are joined."""
        parts = self.content if isinstance(self.content, list) else [ContentPart(text=self.content or "")]
        return "system" if self.role == "developer" else self.role, "".join(part.text for part in parts)


class Asked(Body):
    """What all requests have; how to sample is ignored."""

    unable = "stop", "tools", "functions", "logprobs", "logit_bias"

    model: str = Field("", max_length=1000)
    n: Literal[1] | None = None
    response_format: dict[str, Literal["text"]] | None = None  # not JSON
    max_tokens: int | None = Field(None, ge=1)
    max_completion_tokens: int | None = Field(None, ge=1)
    max_output_tokens: int | None = Field(None, ge=1)
    #: Arguments of the model's chat template, as with vLLM, SGLang and llama.cpp.
    chat_template_kwargs: dict[str, bool | int | str] | None = Field(None, max_length=16)

    @property
    def most(self) -> int | None:
        """Maximum number of tokens of the answer; None if there is none."""
        return self.max_completion_tokens or self.max_tokens or self.max_output_tokens


class ChatRequest(Asked):
    """A chat completion request."""

    messages: list[ChatMessage] = Field(min_length=1, max_length=1000)
    stream: bool = False
    stream_options: dict[str, Any] | None = Field(None, max_length=16)


class CompletionRequest(Asked):
    """A completion request, from before there were chats."""

    prompt: str = Field(min_length=1)
    stream: Literal[False] | None = None


class ResponseRequest(Asked):
    """A request of the Responses API."""

    input: str | list[ChatMessage]
    instructions: str | None = None
    stream: Literal[False] | None = None

    @property
    def turns(self) -> list[tuple[str, str]]:
        """The messages, as in a chat."""
        given = [ChatMessage(content=self.input)] if isinstance(self.input, str) else self.input
        system = [("system", self.instructions)] if self.instructions else []
        return [*system, *(message.turn for message in given)]


#: Field of a tool's prompt -> what it stands for.
_FIELDS = {"{text}": r"(?P<text>\S(?:.*\S)?)", "{target}": r"(?P<target>\S(?:[^\n]{0,98}?\S)?)"}


def pattern_of(prompt: str) -> re.Pattern[str]:
    """Return what matches a tool's prompt: its system message and the last of its user's messages, one after the other.

    Args:
        prompt: the prompt, with ``{text}`` once and ``{target}``, a language's tag or English name, at most once.
            White space in it stands for any white space.

    Raises:
        OptionError: it has other braces, or one of these too often.
    """
    parts = re.split(r"(\{text\}|\{target\})", prompt)
    if sorted(parts[1::2]) not in (["{text}"], ["{target}", "{text}"]) or re.search("[{}]", "".join(parts[::2])):
        raise OptionError("must have {text} once, {target} at most once, and no other braces", "openai_prompt")
    expressions = [_FIELDS.get(each) or r"\s+".join(map(re.escape, each.split())) for each in parts]
    return re.compile(r"\s*".join(["", *filter(None, expressions), ""]), re.DOTALL)


async def _read(hub: Hub, request: Request, kind: type[B]) -> B:
    hub.admission.owner(bearer(request))
    return kind.read(await fields(request))


def openai(hub: Hub) -> list[BaseRoute]:
    """Return the routes of the OpenAI API."""
    #: The model as a chat; None if requests are translated.
    model = hub.admission.service.chat if hub.settings.openai_prompt is None else None

    async def answer(
        request: Request, wanted: Asked, turns: Sequence[tuple[str, str]], hear: Hear | None = None
    ) -> Answered:
        """Answer messages, or translate the text in the last one of the user."""
        if "user" not in dict(turns):
            raise Refused("protocol", "the messages must include one with the role user", "messages")
        if model is not None:
            make = partial(model.answer, turns, wanted.most, wanted.chat_template_kwargs or {})
            return await while_connected(request, hub.admission.chat(model, make, address_of(request), hear))
        return await _translated(request, hub, wanted.model, turns)

    async def chat(request: Request) -> Response:
        """Return a chat model's own answer to the messages.

        With a model that only translates, translate the last message of the user.
        """
        wanted = await _read(hub, request, ChatRequest)
        turns = [message.turn for message in wanted.messages]
        if wanted.stream:
            return await _streamed(wanted, partial(answer, request, wanted, turns))
        found = await answer(request, wanted, turns)
        message = {"role": "assistant", "content": found.text, "refusal": None}
        return _whole("chat.completion", wanted.model, found, message=message)

    async def complete(request: Request) -> Response:
        """Continue `prompt` as it is with a chat model; translate it with a model that only translates."""
        wanted = await _read(hub, request, CompletionRequest)
        if model is None:
            found = await answer(request, wanted, [("user", wanted.prompt)])
        else:
            make = partial(model.complete, wanted.prompt, wanted.most)
            found = await while_connected(request, hub.admission.chat(model, make, address_of(request)))
        return _whole("text_completion", wanted.model, found, text=found.text)

    async def respond(request: Request) -> Response:
        """As a chat, with `instructions` and `input` as its messages."""
        wanted = await _read(hub, request, ResponseRequest)
        found = await answer(request, wanted, wanted.turns)
        return JSONResponse(_response(wanted.model, found))

    async def models(request: Request) -> Response:
        """List the model, and if it only translates, a name for each target language."""
        hub.admission.owner(bearer(request))
        name, targets = hub.offer.model, hub.offer.target_languages if model is None else ()
        names = [name, *(f"{name}/{target}" for target in targets)]
        listed = [{"id": each, "object": "model", "created": 0, "owned_by": "redraft"} for each in names]
        return JSONResponse({"object": "list", "data": listed})

    return routes(
        {
            "/v1/chat/completions": ("POST", chat),
            "/v1/completions": ("POST", complete),
            "/v1/responses": ("POST", respond),
            "/v1/models": ("GET", models),
        },
        refuse,
    )


async def _translated(request: Request, hub: Hub, model: str, turns: Sequence[tuple[str, str]]) -> Answered:
    """Translate the text in the last message of the user, into the language in the prompt or in the model's name."""
    text, name = dict(turns)["user"], None
    if (prompt := hub.settings.openai_prompt) is not None:
        said = "\n".join([*(said for role, said in turns if role == "system"), text])
        match = pattern_of(prompt).fullmatch(said)
        if match is None:
            problem = "the messages must be the prompt in this server's setting openai_prompt"
            raise Refused("option", problem, "messages")
        text, name = match["text"], match.groupdict().get("target")
    if name is None:
        offer = hub.offer
        before, _, name = model.rpartition("/")
        if before != offer.model:
            example = f"{offer.model}/{(offer.target_languages or ('de',))[0]}"
            raise Refused("option", ONLY_TRANSLATES.format(example=example), "model")
    target = language_of(name, "the target language").canonical
    (found,) = await translated(hub, request, target, SOURCE, [text])
    return found


def refuse(refused: Refused, status: int) -> Response:
    """Return an error in OpenAI's format."""
    return JSONResponse(_error(refused), status, refused.headers)


def _error(refused: Refused) -> dict[str, Any]:
    error = {
        "message": refused.sentence,
        "type": _TYPES.get(refused.code, "invalid_request_error"),
        "param": refused.field,
        "code": _CODES.get(refused.code),
    }
    return {"error": error}


def _head(kind: str, model: str) -> dict[str, Any]:
    name = f"chatcmpl-{secrets.token_hex(12)}"
    return {"id": name, "object": kind, "created": int(time.time()), "model": model, "system_fingerprint": "redraft"}


def _choice(found: Answered | None, **content: Any) -> dict[str, Any]:
    reason = None if found is None else "length" if found.cut else "stop"
    return {"index": 0, **content, "logprobs": None, "finish_reason": reason}


def _whole(kind: str, model: str, found: Answered, **content: Any) -> Response:
    return JSONResponse({**_head(kind, model), "choices": [_choice(found, **content)], "usage": _usage(found)})


def _usage(found: Answered) -> dict[str, int]:
    total = found.read + found.written
    return {"prompt_tokens": found.read, "completion_tokens": found.written, "total_tokens": total}


def _response(model: str, found: Answered) -> dict[str, Any]:
    content = {"type": "output_text", "text": found.text, "annotations": []}
    status = "incomplete" if found.cut else "completed"
    message = {"type": "message", "id": f"msg_{secrets.token_hex(12)}", "role": "assistant", "status": status}
    usage = {"input_tokens": found.read, "output_tokens": found.written, "total_tokens": found.read + found.written}
    return {
        "id": f"resp_{secrets.token_hex(12)}",
        "object": "response",
        "created_at": int(time.time()),
        "status": status,
        "incomplete_details": {"reason": "max_output_tokens"} if found.cut else None,
        "error": None,
        "model": model,
        "output": [{**message, "content": [content]}],
        "usage": usage,
    }


async def _streamed(wanted: ChatRequest, work: Callable[[Hear], Awaitable[Answered]]) -> Response:
    """Return an answer as server-sent events while it is written; raises what ``work`` raises before the first."""
    pieces: asyncio.Queue[bytes | None] = asyncio.Queue()
    answer = asyncio.ensure_future(work(pieces.put_nowait))
    answer.add_done_callback(lambda _: pieces.put_nowait(None))
    try:
        first = await pieces.get()
        if first is None:
            await answer
    except BaseException:
        answer.cancel()
        raise
    return StreamingResponse(_events(wanted, answer, first, pieces), media_type="text/event-stream")


async def _events(
    wanted: ChatRequest, answer: asyncio.Future[Answered], piece: bytes | None, pieces: asyncio.Queue[bytes | None]
) -> AsyncIterator[str]:
    usage = bool((wanted.stream_options or {}).get("include_usage"))
    head = _head("chat.completion.chunk", wanted.model) | ({"usage": None} if usage else {})
    decoder, sent = codecs.getincrementaldecoder("utf-8")("replace"), 0
    try:
        yield _event({**head, "choices": [_choice(None, delta={"role": "assistant", "content": ""})]})
        while piece is not None:
            if text := decoder.decode(piece):
                sent += len(text)
                yield _event({**head, "choices": [_choice(None, delta={"content": text})]})
            piece = await pieces.get()
        found = await answer
        if rest := found.text[sent:]:
            yield _event({**head, "choices": [_choice(None, delta={"content": rest})]})
        yield _event({**head, "choices": [_choice(found, delta={})]})
        if usage:
            yield _event({**head, "choices": [], "usage": _usage(found)})
        yield "data: [DONE]\n\n"
    except Refused as refused:
        yield _event(_error(refused))
    finally:
        answer.cancel()


def _event(content: dict[str, Any]) -> str:
    return f"data: {json.dumps(content, ensure_ascii=False)}\n\n"
