"""OpenAI's chat completions, completions, responses and models.

A model that follows instructions gets the messages through its own chat template, as they are, and its answer is
returned as it is.  A model that only translates takes the target language from the model's name, and the text from the
last message of the user; nothing is guessed from words.  For tools that can do neither, the operator describes their
prompt (`Pattern`).
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
from string import Formatter
from typing import Any, Literal, TypeAlias

from pydantic import Field
from starlette.requests import Request
from starlette.responses import JSONResponse, Response, StreamingResponse
from starlette.routing import BaseRoute

from redraft.engine.chat import Answered, Chat
from redraft.engine.lanes import Task
from redraft.errors import OptionError
from redraft.protocol.codes import Refused
from redraft.serve.http.compat.dialect import SOURCE, Body, fields, routes, translated
from redraft.serve.http.endpoints import Lenient, address_of, bearer, language_of, while_connected
from redraft.serve.sessions.hub import Hub

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


class StreamOptions(Lenient):
    """Options of a streamed response."""

    include_usage: bool = False


class TextFormat(Lenient):
    """The form of a response: text, not JSON."""

    type: Literal["text"] = "text"


class Asked(Body):
    """What all requests have; how to sample is ignored."""

    unable = "stop", "tools", "functions", "logprobs", "logit_bias"

    model: str = Field("", max_length=1000)
    n: Literal[1] | None = None
    response_format: TextFormat | None = None
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
    stream_options: StreamOptions | None = None


class CompletionRequest(Asked):
    """A completion request, from before there were chats."""

    prompt: str = Field(min_length=1)
    stream: Literal[False] | None = None


class ResponseRequest(Asked):
    """A request of the Responses API."""

    input: str | list[ChatMessage]
    instructions: str | None = None
    stream: Literal[False] | None = None


class Pattern:
    """The prompt of a tool: its system message and the last of its user's messages, one behind the other.

    White space in it stands for any white space.

    Args:
        text: the prompt, with ``{text}`` once and ``{target}``, a language's tag or English name, at most once.

    Raises:
        OptionError: it has other fields, or one of these too often.
    """

    _FIELDS = {"text": r"(?P<text>\S(?:.*\S)?)", "target": r"(?P<target>\S(?:[^\n]{0,98}?\S)?)"}  # noqa: RUF012

    def __init__(self, text: str) -> None:
        try:
            parts = [(before, name) for before, name, _, _ in Formatter().parse(text)]
        except ValueError as error:
            raise OptionError(
                f": {error}; write {{{{ and }}}} for braces that are not fields", "openai_prompt"
            ) from None
        names = sorted(name for _, name in parts if name is not None)
        if names not in (["text"], ["target", "text"]):
            raise OptionError("must have the field {text} once, {target} at most once, and no other", "openai_prompt")
        self.names_target, expression = "target" in names, ""
        for before, name in parts:
            words = r"\s+".join(map(re.escape, before.split()))
            expression += rf"\s*{words}\s*" if words else r"\s*"
            expression += self._FIELDS[name] if name else ""
        self._pattern = re.compile(rf"{expression}\s*", re.DOTALL)

    def read(self, prompt: str) -> tuple[str, str | None]:
        """Return the text and the name of the target language in a prompt.  Raises `Refused` if it is another one."""
        found = self._pattern.fullmatch(prompt)
        if found is None:
            raise Refused(
                "option", "the messages must be the prompt in this server's setting openai_prompt", "messages"
            )
        return found["text"], found["target"] if self.names_target else None


class _Model:
    """The model behind the API: a chat, or a translator."""

    def __init__(self, hub: Hub) -> None:
        pattern = hub.settings.openai_prompt
        self._hub, self._pattern = hub, None if pattern is None else Pattern(pattern)
        #: The chat; None if requests are translated.
        self.chat = hub.service.chat if pattern is None else None

    async def answer(
        self, request: Request, wanted: Asked, turns: Sequence[tuple[str, str]], hear: Hear | None = None
    ) -> Answered:
        """Answer messages, or translate the text in the last one of the user."""
        if not any(role == "user" for role, _ in turns):
            raise Refused("protocol", "the messages must include one with the role user", "messages")
        if (chat := self.chat) is not None:
            make = partial(chat.answer, turns, wanted.most, wanted.chat_template_kwargs or {})
            return await self._asked(request, chat, make, hear)
        text, name = next(said for role, said in reversed(turns) if role == "user"), None
        if self._pattern is not None:
            text, name = self._pattern.read("\n".join([*(said for role, said in turns if role == "system"), text]))
        return await self._translated(request, wanted.model, name, text)

    async def complete(self, request: Request, wanted: CompletionRequest) -> Answered:
        """Continue a text as it is, or translate it."""
        if (chat := self.chat) is None:
            return await self.answer(request, wanted, [("user", wanted.prompt)])
        return await self._asked(request, chat, partial(chat.complete, wanted.prompt, wanted.most))

    async def _asked(
        self, request: Request, chat: Chat, make: Callable[[], Task], hear: Hear | None = None
    ) -> Answered:
        return await while_connected(request, self._hub.requests.chat(chat, make, address_of(request), hear))

    async def _translated(self, request: Request, model: str, name: str | None, text: str) -> Answered:
        """Translate a text into the language with a name, or into the one in the name of the model."""
        offer = self._hub.offer
        if name is None:
            before, _, name = model.rpartition("/")
            if before != offer.model:
                example = f"{offer.model}/{(offer.target_languages or ('de',))[0]}"
                raise Refused("option", ONLY_TRANSLATES.format(example=example), "model")
        target = language_of(name, "the target language").canonical
        (found,) = await translated(self._hub, request, target, SOURCE, [text])
        return Answered(found.text, False, found.read, found.written)


def openai(hub: Hub) -> list[BaseRoute]:
    """Return the routes of the OpenAI API."""
    model = _Model(hub)

    async def chat(request: Request) -> Response:
        """Return a chat model's own answer to the messages.

        With a model that only translates, translate the last message of the user.
        """
        hub.admission.owner(bearer(request))
        wanted = ChatRequest.read(await fields(request))
        turns = [message.turn for message in wanted.messages]
        if wanted.stream:
            return await _streamed(wanted, partial(model.answer, request, wanted, turns))
        found = await model.answer(request, wanted, turns)
        message = {"role": "assistant", "content": found.text, "refusal": None}
        return _whole("chat.completion", wanted.model, found, message=message)

    async def complete(request: Request) -> Response:
        """Continue `prompt` as it is with a chat model; translate it with a model that only translates."""
        hub.admission.owner(bearer(request))
        wanted = CompletionRequest.read(await fields(request))
        found = await model.complete(request, wanted)
        return _whole("text_completion", wanted.model, found, text=found.text)

    async def respond(request: Request) -> Response:
        """As a chat, with `instructions` and `input` as its messages."""
        hub.admission.owner(bearer(request))
        wanted = ResponseRequest.read(await fields(request))
        given = [ChatMessage(content=wanted.input)] if isinstance(wanted.input, str) else wanted.input
        system = [("system", wanted.instructions)] if wanted.instructions else []
        found = await model.answer(request, wanted, [*system, *(message.turn for message in given)])
        return JSONResponse(_response(wanted.model, found))

    async def models(request: Request) -> Response:
        """List the model, and if it only translates, a name for each target language."""
        hub.admission.owner(bearer(request))
        name, targets = hub.offer.model, hub.offer.target_languages if model.chat is None else ()
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
    """Return a choice; with an answer, its finish reason is set."""
    reason = None if found is None else "length" if found.cut else "stop"
    return {"index": 0, **content, "logprobs": None, "finish_reason": reason}


def _whole(kind: str, model: str, found: Answered, **content: Any) -> Response:
    return JSONResponse({**_head(kind, model), "choices": [_choice(found, **content)], "usage": _usage(found)})


def _usage(found: Answered) -> dict[str, int]:
    total = found.read + found.written
    return {"prompt_tokens": found.read, "completion_tokens": found.written, "total_tokens": total}


def _response(model: str, found: Answered) -> dict[str, Any]:
    """Return an answer as the Responses API does."""
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
    usage = bool(wanted.stream_options and wanted.stream_options.include_usage)
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
