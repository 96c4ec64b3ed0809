"""OpenAI's chat completions, completions, responses and models, for tools that translate with a language model.

The text is in the last user message.  The prompt or the model name gives the target language.
"""

from __future__ import annotations

import json
import secrets
import time
from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import Any, Literal

from pydantic import Field
from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import BaseRoute

from redraft.protocol.codes import Refused
from redraft.serve.http.compat.callers import Callers, Reply
from redraft.serve.http.compat.dialect import SOURCE, caller, fields, routes
from redraft.serve.http.compat.instructions import Instructions
from redraft.serve.http.compat.naming import names_target, source_of, target_of
from redraft.serve.http.endpoints import Lenient, bearer, language_of

#: Error code -> OpenAI's error type.
_TYPES = {"limit": "requests", "capacity": "server_error", "draining": "server_error", "engine": "server_error"}
_CODES = {"key": "invalid_api_key", "limit": "rate_limit_exceeded", "missing": "model_not_found"}


class ContentPart(Lenient):
    """A part of a message."""

    type: str = "text"
    text: str = ""


class ChatMessage(Lenient):
    """A message of the chat."""

    role: str = "user"
    content: str | list[ContentPart] | None = None

    @property
    def text(self) -> str:
        """The text of the message; parts are joined."""
        if isinstance(self.content, list):
            return "".join(part.text for part in self.content)
        return self.content or ""


class StreamOptions(Lenient):
    """Options of a streamed response."""

    include_usage: bool = False


class TextFormat(Lenient):
    """The form of a response: a translation is text, not JSON."""

    type: Literal["text"] = "text"


class Asked(Lenient):
    """What all requests have; sampling parameters are ignored."""

    model: str = Field("", max_length=1000)
    n: Literal[1] | None = None
    user: str | None = Field(None, max_length=1000)
    response_format: TextFormat | None = None


class ChatRequest(Asked):
    """A chat completion request."""

    messages: list[ChatMessage] = Field(min_length=1, max_length=1000)
    stream: bool = False
    stream_options: StreamOptions | None = None


class CompletionRequest(Asked):
    """A completion request, from before there were chats."""

    prompt: str
    stream: Literal[False] | None = None


class ResponseRequest(Asked):
    """A request of the Responses API."""

    input: str | list[ChatMessage]
    instructions: str | None = None
    stream: Literal[False] | None = None


def openai(callers: Callers) -> list[BaseRoute]:
    """Return the routes of the OpenAI API."""
    instructions = Instructions()
    callers.hub.swept.append(lambda: instructions.forget(callers.hub.settings.keep_seconds))

    async def translated(request: Request, wanted: Asked, system: str, asking: Sequence[str]) -> Reply:
        """Translate the text in the last of the user's messages."""
        key = bearer(request) or ""
        owner = callers.hub.admission.owner(key)
        who = caller(request, "openai", key, owner, "", SOURCE, system, wanted.model, wanted.user or "")
        in_model = _target_in(callers, wanted.model)
        sent, prompt = instructions.text_of(
            who.marks,
            system,
            asking,
            lambda instruction: in_model is None and names_target(instruction, system),
        )
        target = in_model or _target_in_prompt(callers, prompt)
        who = replace(who, target=target, source_language=source_of(prompt) or SOURCE)
        (found,) = await callers.replies(who, [sent.text], request.is_disconnected)
        return found

    async def chat(request: Request) -> Response:
        callers.hub.admission.owner(bearer(request))
        wanted = ChatRequest.checked(await fields(request))
        found = await translated(request, wanted, *_split(wanted.messages, "messages"))
        if wanted.stream:
            usage = bool(wanted.stream_options and wanted.stream_options.include_usage)
            return Response("".join(_events(wanted.model, found, usage=usage)), media_type="text/event-stream")
        message = {"role": "assistant", "content": found.text, "refusal": None}
        answer = {**_head("chat.completion", wanted.model), "choices": [_choice(found, message=message)]}
        return JSONResponse({**answer, "usage": _usage(found)})

    async def complete(request: Request) -> Response:
        callers.hub.admission.owner(bearer(request))
        wanted = CompletionRequest.checked(await fields(request))
        found = await translated(request, wanted, "", [wanted.prompt])
        answer = {**_head("text_completion", wanted.model), "choices": [_choice(found, text=found.text)]}
        return JSONResponse({**answer, "usage": _usage(found)})

    async def respond(request: Request) -> Response:
        callers.hub.admission.owner(bearer(request))
        wanted = ResponseRequest.checked(await fields(request))
        given = [ChatMessage(role="user", content=wanted.input)] if isinstance(wanted.input, str) else wanted.input
        system, asking = _split(given, "input")
        found = await translated(request, wanted, f"{wanted.instructions or ''}\n{system}".strip(), asking)
        return JSONResponse(_response(wanted.model, found))

    async def models(request: Request) -> Response:
        callers.hub.admission.owner(bearer(request))
        offer = callers.hub.offer
        names = [offer.model, *(f"{offer.model}/{target}" for target in offer.target_languages)]
        listed = [{"id": name, "object": "model", "created": 0, "owned_by": "redraft"} for name in names]
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


def _target_in(callers: Callers, model: str) -> str | None:
    name, _, language = model.rpartition("/")
    if name != callers.hub.offer.model:
        return None
    return language_of(language, "the language in the name of the model").canonical


def _target_in_prompt(callers: Callers, prompt: str) -> str:
    if found := target_of(prompt):
        return found
    offer = callers.hub.offer
    example = f"{offer.model}/{(offer.target_languages or ('de',))[0]}"
    raise Refused(
        "option",
        f"the prompt must name the target language, as in 'Translate into German'; or set the model to {example!r}",
    )


def _split(messages: Sequence[ChatMessage], field: str) -> tuple[str, list[str]]:
    """Return the prompt and the user's messages.  Raises `Refused`, which names the field, if the user has none."""
    asking = [each.text for each in messages if each.role == "user"]
    if not asking:
        raise Refused(
            "protocol", f"{field} must include one with the role user, which holds the text to translate", field
        )
    return "\n".join(each.text for each in messages if each.role in ("system", "developer")), asking


def refuse(refused: Refused, status: int) -> Response:
    """Return an error in OpenAI's format."""
    error = {
        "message": refused.sentence,
        "type": _TYPES.get(refused.code, "invalid_request_error"),
        "param": refused.field,
        "code": _CODES.get(refused.code),
    }
    return JSONResponse({"error": error}, status)


def _head(kind: str, model: str) -> dict[str, Any]:
    name = f"chatcmpl-{secrets.token_hex(12)}"
    return {"id": name, "object": kind, "created": int(time.time()), "model": model, "system_fingerprint": "redraft"}


def _choice(found: Reply | None, **content: Any) -> dict[str, Any]:
    """Return a choice; with a reply, its finish reason is set."""
    reason = None if found is None else "length" if found.cut else "stop"
    return {"index": 0, **content, "logprobs": None, "finish_reason": reason}


def _usage(found: Reply) -> dict[str, int]:
    total = found.read + found.written
    return {"prompt_tokens": found.read, "completion_tokens": found.written, "total_tokens": total}


def _response(model: str, found: Reply) -> dict[str, Any]:
    """Return a translation as the Responses API does."""
    content = {"type": "output_text", "text": found.text, "annotations": []}
    message = {"type": "message", "id": f"msg_{secrets.token_hex(12)}", "role": "assistant", "status": "completed"}
    usage = {"input_tokens": found.read, "output_tokens": found.written, "total_tokens": found.read + found.written}
    return {
        "id": f"resp_{secrets.token_hex(12)}",
        "object": "response",
        "created_at": int(time.time()),
        "status": "completed",
        "error": None,
        "model": model,
        "output": [{**message, "content": [content]}],
        "usage": usage,
    }


def _events(model: str, found: Reply, *, usage: bool) -> Iterator[str]:
    """Yield the translation as server-sent events; the text is one event, since it is verified in one pass."""
    head = _head("chat.completion.chunk", model)
    for end, delta in ((None, {"role": "assistant", "content": ""}), (None, {"content": found.text}), (found, {})):
        yield _event({**head, "choices": [_choice(end, delta=delta)]} | ({"usage": None} if usage else {}))
    if usage:
        yield _event({**head, "choices": [], "usage": _usage(found)})
    yield "data: [DONE]\n\n"


def _event(content: dict[str, Any]) -> str:
    return f"data: {json.dumps(content, ensure_ascii=False)}\n\n"
