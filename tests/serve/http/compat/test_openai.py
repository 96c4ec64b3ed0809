"""OpenAI's API: a chat model's own answers to messages as they are, and models that only translate."""

from __future__ import annotations

import json
import re
import time
from collections.abc import Iterator, Mapping
from typing import Any

import pytest

from redraft.errors import OptionError
from redraft.serve.http.compat import check_compat
from redraft.serve.http.compat.openai import ONLY_TRANSLATES, pattern_of
from redraft.serve.settings import ServeSettings
from tests.fakes import greedy
from tests.serve.fakes import CachedModel, slow
from tests.serve.servers import Response, Running, running
from tests.serve.talking import expected
from tests.waiting import eventually

TEMPLATE = (
    "{% for message in messages %}"
    "{% if message.role == 'tool' %}{{ raise_exception('no tools') }}{% endif %}"
    "<{{ message.role }}>{{ message.content | trim }}\n"
    "{% endfor %}<assistant>{% if enable_thinking %}<think>{% endif %}"
)
SYSTEM = {"role": "system", "content": "Do not translate into English; translate into German."}
TEXT = "Text: 🔤 Good morning. I have a dog. 🔤 "


class ChatModel(CachedModel):
    """A table that takes messages."""

    metadata: Mapping[str, str] = {"tokenizer.chat_template": TEMPLATE, "general.name": "table"}


@pytest.fixture(scope="module")
def chatting() -> Iterator[Running]:
    with running(ChatModel(1), compat=("openai",), busy=1000) as found:
        yield found


@pytest.fixture(scope="module")
def translating() -> Iterator[Running]:
    with running(compat=("openai",), busy=1000) as found:
        yield found


def user(text: str) -> dict[str, Any]:
    return {"role": "user", "content": text}


def chat(server: Running, *messages: dict[str, Any], **fields: Any) -> Response:
    return server.ask("/v1/chat/completions", {"model": "any", "messages": messages, **fields})


def said(answer: Response) -> str:
    return str(answer.json["choices"][0]["message"]["content"])


def plain(prompt: str, limit: int = 1000) -> str:
    """What greedy decoding without Redraft's loop answers to a prompt."""
    model = ChatModel(1)
    ids = [1, *model.tokenize(prompt)]
    tokens = greedy(model, ids, min(limit, model.context_length - len(ids)))
    return b"".join(map(model.token_bytes, tokens)).decode()


# A chat


def test_messages_as_they_are(chatting: Running) -> None:
    prompt = f"<system>{SYSTEM['content']}\n<user>{TEXT.strip()}\n<assistant>"
    for role in ("system", "developer"):
        answer = chat(chatting, SYSTEM | {"role": role}, user(TEXT))
        assert said(answer) == plain(prompt)
    (choice,) = answer.json["choices"]
    message = {"role": "assistant", "content": plain(prompt), "refusal": None}
    assert choice == {"index": 0, "message": message, "logprobs": None, "finish_reason": "stop"}
    usage = answer.json["usage"]
    assert usage["prompt_tokens"] == 1 + len(prompt.encode())
    assert usage["total_tokens"] == usage["prompt_tokens"] + usage["completion_tokens"]
    assert (answer.json["object"], answer.json["model"]) == ("chat.completion", "any")


def test_earlier_answers_change_nothing(chatting: Running) -> None:
    """Texts grow, repeat, and are those of others: only what it costs changes."""
    for text in ("we saw", "we saw her", "we saw her duck", "we saw her duck", "again", "we saw her duck under"):
        prompt = f"<system>{SYSTEM['content']}\n<user>{text}\n<assistant>"
        assert said(chat(chatting, SYSTEM, user(text))) == plain(prompt)


def test_repeated_chat_takes_one_pass(chatting: Running) -> None:
    first = said(chat(chatting, user("we all looked")))
    before = len(chatting.model.new)
    assert said(chat(chatting, user("we all looked"))) == first
    assert len(chatting.model.new) == before + 1


def test_whole_chat(chatting: Running) -> None:
    parts = [{"type": "text", "text": "we "}, {"type": "text", "text": "saw"}]
    messages = [user("we"), {"role": "assistant", "content": "wir"}, {"role": "user", "content": parts}]
    assert said(chat(chatting, *messages)) == plain("<user>we\n<assistant>wir\n<user>we saw\n<assistant>")


def test_arguments_of_the_template(chatting: Running) -> None:
    answer = chat(chatting, user("we saw"), chat_template_kwargs={"enable_thinking": True})
    assert said(answer) == plain("<user>we saw\n<assistant><think>")


def test_most_tokens(chatting: Running) -> None:
    for name in ("max_tokens", "max_completion_tokens"):
        answer = chat(chatting, user("we saw her duck"), **{name: 1})
        assert said(answer) == plain("<user>we saw her duck\n<assistant>", 1)
        assert answer.json["choices"][0]["finish_reason"] == "length"


def test_streamed_chat(chatting: Running) -> None:
    answer = chat(chatting, user("her duck"), stream=True, stream_options={"include_usage": True})
    assert answer.headers["content-type"].startswith("text/event-stream")
    events = re.findall(r"data: (.*)\n\n", answer.text)
    assert events[-1] == "[DONE]"
    chunks = [json.loads(event) for event in events[:-1]]
    assert {chunk["object"] for chunk in chunks} == {"chat.completion.chunk"}
    deltas = [chunk["choices"][0]["delta"] for chunk in chunks[:-1]]
    assert deltas[0]["role"] == "assistant" and len(deltas) > 4  # while it is written
    assert "".join(delta.get("content", "") for delta in deltas) == plain("<user>her duck\n<assistant>")
    assert [choice["finish_reason"] for chunk in chunks for choice in chunk["choices"]][-1] == "stop"
    assert (chunks[-1]["choices"], chunks[-1]["usage"]["prompt_tokens"] > 0) == ([], True)


def test_stream_that_fails() -> None:
    broken = ChatModel(1)
    broken.end_bias, broken.broken = -1000.0, lambda _: len(broken.new) > 2
    with running(broken, compat=("openai",), busy=1000) as server:
        answer = chat(server, user("we saw her duck"), stream=True)
        *_, last = re.findall(r"data: (.*)\n\n", answer.text)
        assert json.loads(last)["error"]["type"] == "server_error"
        assert chat(server, user("we saw"), stream=True).status == 500  # nothing was written yet


def test_stream_that_is_left() -> None:
    model = ChatModel(1, broken=slow)
    model.end_bias = -1000.0
    with running(model, compat=("openai",), busy=1000) as server:
        body = {"messages": [user("we saw")], "stream": True}
        import http.client

        connection = http.client.HTTPConnection("127.0.0.1", server.port)
        connection.request("POST", "/v1/chat/completions", json.dumps(body), {"content-type": "application/json"})
        assert connection.getresponse().read(100)
        connection.close()
        eventually(lambda: server.engine.scheduler.requests == 0)
        before = len(model.new)
        time.sleep(0.2)
        assert len(model.new) == before < model.context_length - 50


def test_completions_and_responses(chatting: Running) -> None:
    completion = chatting.ask("/v1/completions", {"prompt": "we saw"}).json
    assert (completion["object"], completion["choices"][0]["text"]) == ("text_completion", plain("we saw"))
    wanted = plain("<system>Be brief.\n<user>we saw\n<assistant>")
    for given in ("we saw", [{"role": "user", "content": [{"type": "input_text", "text": "we saw"}]}]):
        found = chatting.ask("/v1/responses", {"instructions": "Be brief.", "input": given}).json
        assert found["status"] == "completed" and found["output"][0]["content"][0]["text"] == wanted
        assert found["usage"]["total_tokens"] == found["usage"]["input_tokens"] + found["usage"]["output_tokens"]
    found = chatting.ask("/v1/responses", {"input": "we saw her duck", "max_output_tokens": 1}).json
    assert (found["status"], found["incomplete_details"]) == ("incomplete", {"reason": "max_output_tokens"})


def test_models_of_a_chat(chatting: Running) -> None:
    assert [model["id"] for model in chatting.ask("/v1/models").json["data"]] == ["table"]


@pytest.mark.parametrize(
    ("path", "more", "field"),
    [
        ("/v1/chat/completions", {"response_format": {"type": "json_object"}}, "response_format.type"),
        ("/v1/chat/completions", {"n": 2}, "n"),
        ("/v1/chat/completions", {"stop": ["."]}, "stop"),
        ("/v1/chat/completions", {"tools": [{"type": "function"}]}, "tools"),
        ("/v1/chat/completions", {"logprobs": True}, "logprobs"),
        ("/v1/chat/completions", {"messages": [{"role": "tool", "content": "x"}]}, "messages"),
        ("/v1/chat/completions", {"messages": [user("x"), {"role": "tool", "content": "x"}]}, None),
        ("/v1/chat/completions", {"messages": [user("x" * 600)]}, "messages"),
        ("/v1/chat/completions", {"messages": [{"role": "user", "content": [{"type": "image_url"}]}]}, "messages"),
        ("/v1/completions", {"prompt": "x" * 600}, "prompt"),
        ("/v1/completions", {"stream": True}, "stream"),
        ("/v1/responses", {"stream": True}, "stream"),
        ("/v1/responses", {"input": []}, "messages"),
    ],
)
def test_refused_wishes(chatting: Running, path: str, more: dict[str, Any], field: str | None) -> None:
    answer = chatting.ask(path, {"messages": [user("we")], "prompt": "we", "input": "we", **more})
    assert (answer.status, answer.json["error"]["type"]) == (400, "invalid_request_error")
    assert (answer.json["error"]["param"] or "").startswith(field or "")


# A model that only translates


def test_target_in_the_name(translating: Running) -> None:
    name = translating.hub.offer.model
    for target in ("de", "ja"):
        answer = chat(translating, SYSTEM, user("earlier"), user("we saw. her duck"), model=f"{name}/{target}")
        assert said(answer) == f"{expected('we saw.', target)} {expected('her duck', target)}"
    assert name in [model["id"] for model in translating.ask("/v1/models").json["data"]]


@pytest.mark.parametrize("model", ["", "gpt", "gpt/de", "demo"])
def test_no_target(translating: Running, model: str) -> None:
    answer = chat(translating, user("Translate into German: we saw"), model=model)
    message = ONLY_TRANSLATES.format(example="demo/de")
    assert (answer.status, answer.json["error"]["message"]) == (400, message)
    assert answer.json["error"]["param"] == "model"


def test_other_endpoints_translate(translating: Running) -> None:
    completion = translating.ask("/v1/completions", {"model": "demo/de", "prompt": "we saw"}).json
    assert completion["choices"][0]["text"] == expected("we saw")
    found = translating.ask("/v1/responses", {"model": "demo/de", "input": "we saw"}).json
    assert found["output"][0]["content"][0]["text"] == expected("we saw")
    answer = chat(translating, user("we saw"), model="demo/de", stream=True)
    assert expected("we saw") in answer.text and answer.text.endswith("data: [DONE]\n\n")


# A prompt that the operator describes

PROMPT = "You translate into {target}.\n\nText: 🔤 {text} 🔤"


@pytest.mark.parametrize("model", [CachedModel(1), ChatModel(1)])
def test_pattern(model: CachedModel) -> None:
    with running(model, compat=("openai",), busy=1000, openai_prompt=PROMPT) as server:
        system = {"role": "system", "content": "You translate into German."}
        translated = chat(server, system, user("Text:\n🔤 we saw. 🔤 "))
        assert translated.status == 200
        if type(model) is CachedModel:
            assert said(translated) == expected("we saw.")
        answer = chat(server, user("Translate into German: we saw"))
        assert (answer.status, answer.json["error"]["param"]) == (400, "messages")
        unknown = chat(server, system | {"content": "You translate into Nonsense."}, user("Text: 🔤 we 🔤"))
        assert unknown.status == 400 and "Nonsense" in unknown.text


@pytest.mark.parametrize(
    ("pattern", "prompt", "found"),
    [
        (PROMPT, "You translate into German.\nText: 🔤 we saw.\n\nher duck 🔤", ("we saw.\n\nher duck", "German")),
        ("{text}", "  we saw ", ("we saw", None)),
        ("[{target}] {text}", "[zh-Hant] a ] b", ("a ] b", "zh-Hant")),
        ("Translate to {target}: {text}", "translate to de: we", None),
        ("a {text} b", "a b", None),
    ],
)
def test_reading_a_pattern(pattern: str, prompt: str, found: tuple[str, str | None] | None) -> None:
    match = pattern_of(pattern).fullmatch(prompt)
    assert (match and (match["text"], match.groupdict().get("target"))) == found


@pytest.mark.parametrize(
    "pattern", ["", "into {target}", "{text} {text}", "{text} {source}", "{text", "{}{text}", "{text}}"]
)
def test_wrong_pattern(pattern: str) -> None:
    with pytest.raises(OptionError) as caught:
        check_compat(ServeSettings(openai_prompt=pattern))
    assert caught.value.field == "openai_prompt"
