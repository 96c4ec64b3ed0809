from __future__ import annotations

from pathlib import Path

import pytest

from redraft.captions.languages import parse_language
from redraft.captions.prompt import Prompter, Request, filled, prompt_file
from redraft.errors import OptionError

ENGLISH, GERMAN = parse_language("en"), parse_language("de")
EXAMPLES = "English: Good morning.\nGerman: Guten Morgen.\n\n{source_language}: {source}\n{target_language}:\n"


def rendered(prompt: str, request: Request, metadata: dict[str, str] | None = None) -> str:
    prompter = Prompter(metadata or {}, ENGLISH, GERMAN, prompt=prompt)
    assert prompter.template == "prompt"
    return "".join(segment.text for segment in prompter.segments(request))


def test_base_model() -> None:
    text = rendered(EXAMPLES, Request("The cat {sits}."))
    assert text == "English: Good morning.\nGerman: Guten Morgen.\n\nEnglish: The cat {sits}.\nGerman:"


def test_fields() -> None:
    prompt = "{ x} {{% y %} { {{ source_code }} {source_code}-{target_code}|{terms}|{context}|{source}"
    request = Request("Hi.", (("One.", "Eins."), ("Two.", "Zwei.")), (("hull", "Rumpf"),))
    assert (
        rendered(prompt, request)
        == "{ x} {{% y %} { {{ source_code }} en-de|hull = Rumpf|One. = Eins.\nTwo. = Zwei.|Hi."
    )
    assert rendered(prompt, Request("Hi.")) == "{ x} {{% y %} { {{ source_code }} en-de|||Hi."


def test_replaces_model_layout() -> None:
    assert rendered("<2{target_code}> {source}", Request("Hi."), {"redraft.prompt": "{source}<2{code}>"}) == "<2de> Hi."


def test_open_thoughts_are_closed() -> None:
    assert rendered("Translate: {source}<A><think>\n", Request("Hi.")) == "Translate: Hi.<A><think>\n\n</think>\n\n"
    assert rendered("Translate: {source}", Request("<think>")) == "Translate: <think>"


def test_source_is_not_special() -> None:
    segments = Prompter({}, ENGLISH, GERMAN, prompt=EXAMPLES).segments(Request("<|im_end|>"))
    assert [(each.text, each.special) for each in segments if "im_end" in each.text] == [("<|im_end|>", False)]


@pytest.mark.parametrize(
    ("prompt", "message"),
    [
        ("English:", r"^prompt: \{source\} is missing"),
        ("{sorce}", r"^prompt: \{sorce\} is not a field; allowed: \{source\}, \{source_language\}, "),
        ("{source} {source}", r"^prompt: \{source\} may occur once, not 2 times$"),
        ("{source:q}", r"^prompt: \{source:q\} is not a field"),
        ("{source} {target_code!z}", r"^prompt: \{target_code!z\} is not a field"),
    ],
)
def test_wrong_prompt(prompt: str, message: str) -> None:
    with pytest.raises(OptionError, match=message):
        filled(prompt)


@pytest.mark.parametrize(
    ("request_", "option", "field"),
    [(Request("a", (("b", "c"),)), "context", "context"), (Request("a", (), (("b", "c"),)), "glossary", "terms")],
)
def test_no_field_for_it(request_: Request, option: str, field: str) -> None:
    with pytest.raises(OptionError, match=rf"^{option}: the prompt has no field \{{{field}\}}"):
        rendered(EXAMPLES, request_)


def test_template_and_prompt() -> None:
    with pytest.raises(OptionError, match="^template and prompt cannot be combined"):
        Prompter({}, ENGLISH, GERMAN, "qwen3", EXAMPLES)


def test_file(tmp_path: Path) -> None:
    (tmp_path / "good").write_text(EXAMPLES, encoding="utf-8")
    (tmp_path / "bad").write_bytes(b"\xff\xfe")
    (tmp_path / "marked").write_text(EXAMPLES, encoding="utf-8-sig")
    assert prompt_file(tmp_path / "good") == prompt_file(tmp_path / "marked") == EXAMPLES
    for name in ("bad", "missing"):
        with pytest.raises(OptionError, match=f"^prompt: '.*{name}' cannot be read as UTF-8 text"):
            prompt_file(tmp_path / name)
    (tmp_path / "other").write_text("English:", encoding="utf-8")
    with pytest.raises(OptionError, match=r"^prompt: \{source\} is missing"):
        prompt_file(tmp_path / "other")
