"""Prompts as tools send them, in several languages, and texts that try to take long."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from redraft.serve.http.compat.instructions import Instructions
from redraft.serve.http.compat.naming import names_target, source_of, target_of
from tests.serve.servers import Running, running
from tests.serve.talking import expected

TEXT = "Good morning. I have a dog."
ENGINE = "You are a professional translation engine. You must only translate the text content, never interpret it."


@pytest.mark.parametrize(
    ("system", "user", "source", "target"),
    [
        ("", "把下面的文本翻译成德语，不要额外解释。\n\n{}", None, "de"),
        ("", "将下面的英文文本翻译成中文：{}", "en", "zh"),
        ("你是一个专业的翻译引擎，只返回译文。", "翻译成中文（仅输出翻译内容）：\n\n{}", None, "zh"),
        ("次の英語を日本語に翻訳してください。訳文だけを出力してください。", "{}", "en", "ja"),
        ("Übersetze den Text des Nutzers ins Deutsche.", "{}", None, "de"),
        ("다음 문장을 일본어로 번역하세요.", "{}", None, "ja"),
        ("Traduis le texte suivant en allemand.", "{}", None, "de"),
        (
            "You are a machine translation engine.",
            "Translate the following source text from English to German. Output the translation directly.\n\n"
            "Source Text: {}\n\nTranslated Text:",
            "en",
            "de",
        ),
        (ENGINE, 'Translate into Simplified Chinese:\n"""\n{}\n"""', None, "zh"),
        ("", "Translate from English to German, keep punctuation, give only the output:\n\n{}", "en", "de"),
        ("Help me translate the following English text into Japanese.", "{}", "en", "ja"),
        ("Translate to: de", "{}", None, "de"),
        ("You translate subtitles. target_language=de", "{}", None, "de"),
        ("", "{}\n\nTranslate the above text into German.", None, "de"),
        ("", "Translate the text to German. Rules:\n- Keep names.\n- No comments.\n\nText:\n{}", None, "de"),
        ("You are a German translator.", "Translate to German (output translation only):\n\n{}", None, "de"),
        (ENGINE, "translate from English to German:\n\n{} =>", "en", "de"),
    ],
)
def test_prompts_of_tools(system: str, user: str, source: str | None, target: str) -> None:
    found, prompt = Instructions().text_of(
        ("caller",), system, [user.format(TEXT)], lambda instruction: names_target(instruction, system)
    )
    assert (found.text, source_of(prompt), target_of(prompt)) == (TEXT, source, target)


def test_wrappers_are_forgotten() -> None:
    known = Instructions()
    for number in range(100):
        for text in ("one dog ran home today", "seven cats sat there quietly"):
            known.text_of(("caller",), "", [f"translate {number}: {text}"], lambda instruction: False)
    (habits,) = known._callers.values()
    assert len(habits.repeated) <= 20 and len(habits.latest) <= 20


@pytest.fixture(scope="module")
def server() -> Iterator[Running]:
    with running(busy=1000, compat=("openai",)) as found:
        yield found


def test_completions_and_responses(server: Running) -> None:
    asked = "Translate into German:\n\nwe saw"
    completion = server.ask("/v1/completions", {"model": "any", "prompt": asked}).json
    assert (completion["object"], completion["choices"][0]["text"]) == ("text_completion", expected("we saw"))
    parts = [{"role": "user", "content": [{"type": "input_text", "text": "we saw"}]}]
    for more in ({"input": asked}, {"instructions": "Translate into German.", "input": "we saw"}):
        found = server.ask("/v1/responses", {"model": "any", **more}).json
        assert found["status"] == "completed" and found["output"][0]["content"][0]["text"] == expected("we saw")
    found = server.ask("/v1/responses", {"instructions": "Translate into German.", "input": parts}).json
    assert found["output"][0]["content"][0]["text"] == expected("we saw")
    assert found["usage"]["total_tokens"] == found["usage"]["input_tokens"] + found["usage"]["output_tokens"]


@pytest.mark.parametrize(
    ("path", "more", "field"),
    [
        ("/v1/chat/completions", {"response_format": {"type": "json_object"}}, "response_format.type"),
        ("/v1/completions", {"stream": True}, "stream"),
        ("/v1/responses", {"stream": True}, "stream"),
    ],
)
def test_refused_wishes(server: Running, path: str, more: dict[str, Any], field: str) -> None:
    asked = "Translate into German: we saw"
    messages = [{"role": "user", "content": asked}]
    answer = server.ask(path, {"messages": messages, "prompt": asked, "input": asked, **more})
    assert (answer.status, answer.json["error"]["param"]) == (400, field)
