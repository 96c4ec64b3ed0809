"""Conversations as text, by models' own templates."""

from __future__ import annotations

import re

import pytest

from redraft.captions.chat import ChatTemplate
from redraft.errors import ModelError
from tests.prompts import DROPS_SYSTEM, RAISES_ON_SYSTEM, THINKS, WITH_SYSTEM

EARLIER = [("English: One.", "Eins."), ("English: Two.", "Zwei.")]
QUESTION, HEADER = "English: The cat", "German:"


def render(template: str, earlier: list[tuple[str, str]] | None = None) -> str:
    return ChatTemplate(template, end="</s>")("Translate.", earlier or [], QUESTION, HEADER)


class TestOwnTemplate:
    def test_with_system_role(self) -> None:
        assert render(WITH_SYSTEM) == (
            "<|system|>Translate.<|end|>\n<|user|>English: The cat<|end|>\n<|assistant|>German:"
        )

    def test_that_raises_on_system(self) -> None:
        assert render(RAISES_ON_SYSTEM, EARLIER[:1]) == (
            "[user]\nTranslate.\nEnglish: One.[end]\n[model]\nGerman: Eins.[end]\n"
            "[user]\nEnglish: The cat[end]\n[model]\nGerman:"
        )

    def test_that_drops_system_and_begins_answers_with_space(self) -> None:
        assert render(DROPS_SYSTEM) == "USER: Translate.\nEnglish: The cat ASSISTANT: German:"

    def test_end_token_is_written_where_template_wants_it(self) -> None:
        assert "ASSISTANT: German: Eins.</s>USER:" in render(DROPS_SYSTEM, EARLIER[:1])

    def test_thinking_is_turned_off(self) -> None:
        assert render(THINKS).endswith("<assistant><think></think>German:")

    def test_think_block_that_cannot_be_turned_off_is_closed(self) -> None:
        always = "{% for m in messages %}{{ m.content }}{% endfor %}<assistant><think>\n"
        assert render(always).endswith("<assistant><think>\n\n</think>\n\nGerman:")

    @pytest.mark.parametrize(
        ("opened", "closed"),
        [
            ("<seed:think>", "</seed:think>"),
            ("<think:opensource>\n", "</think:opensource>"),
            ("[THINK]", "[/THINK]"),
            ("<|START_THINKING|>", "<|END_THINKING|>"),
            ("<|channel>thought\n", "<channel|>"),
            ("Here are my reasoning steps:\n", "[BEGIN FINAL RESPONSE]"),
        ],
    )
    def test_thoughts_of_any_family_are_closed(self, opened: str, closed: str) -> None:
        always = f"{{% for m in messages %}}{{{{ m.content }}}}{{% endfor %}}<assistant>{opened}"
        assert render(always).endswith(f"<assistant>{opened.rstrip()}\n\n{closed}\n\nGerman:")

    @pytest.mark.parametrize(
        "asked",
        ["enable_thinking", "thinking", "reasoning", "thinking_budget != 0", "thinking_mode != 'disabled'"],
    )
    def test_thinking_is_turned_off_by_every_name(self, asked: str) -> None:
        template = f"{{% for m in messages %}}{{{{ m.content }}}}{{% endfor %}}{{% if {asked} %}}THINK{{% endif %}}"
        assert "THINK" not in render(template)

    def test_answers_begin_behind_empty_thoughts(self) -> None:
        """Command A writes empty thoughts before a new answer only, and a mark before every one."""
        template = (
            "{% for m in messages %}<{{ m.role }}>{% if m.role == 'assistant' %}<|START_TEXT|>{% endif %}"
            "{{ m.content }}{% endfor %}"
            "{% if add_generation_prompt %}<assistant><|START_THINKING|><|END_THINKING|>{% endif %}"
        )
        assert render(template).endswith("<assistant><|START_THINKING|><|END_THINKING|><|START_TEXT|>German:")

    def test_channel_of_answers_is_begun(self) -> None:
        """A model of channels would otherwise begin with its thoughts, which have no end in a caption."""
        channels = (
            "{% for m in messages %}{% if m.role == 'assistant' %}<|start|>assistant<|channel|>final<|message|>"
            "{% else %}<|start|>{{ m.role }}<|message|>{% endif %}{{ m.content }}<|end|>{% endfor %}"
            "{% if add_generation_prompt %}<|start|>assistant{% endif %}"
        )
        assert render(channels).endswith("<|end|><|start|>assistant<|channel|>final<|message|>German:")

    def test_template_without_start_of_the_answer(self) -> None:
        plain = "{% for m in messages %}[{{ m.role }}]{{ m.content }}[/]{% endfor %}"
        assert render(plain).endswith("English: The cat[/][assistant]German:")

    def test_extensions_that_chat_templates_expect(self) -> None:
        template = (
            "{{ strftime_now('%Y') }}{{ {'a': 'é<'} | tojson }}{% for m in messages %}"
            "{% generation %}{{ m.content }}{% endgeneration %}{% endfor %}"
            "{% if tools is not none %}TOOLS{% endif %}"
        )
        assert re.fullmatch(r'20\d\d{"a": "é<"}Translate\.English: The catGerman:', render(template))

    @pytest.mark.parametrize(
        ("template", "reason"),
        [
            ("{% if %}", "Expected an expression"),
            ("{{ raise_exception('never') }}", "never"),
            ("{{ messages[7].content.x }}", "no element 7"),
            ("{{ messages[-1].content.split('\\n')[-1] }}", "it drops the instruction"),
            ("{{ messages.append(1) }}", "unsafe"),
            ("{{ ''.__class__.__mro__ }}", "unsafe"),
            ("{{ 1 // 0 }}", "division"),
            ("{% macro m() %}{{ m() }}{% endmacro %}{{ m() }}", "recursion"),
        ],
    )
    def test_one_that_cannot_be_used_is_refused_with_reason(self, template: str, reason: str) -> None:
        with pytest.raises(
            ModelError, match=r"^the model's chat template cannot be used \([^\n]+\): name another"
        ) as e:
            render(template)
        assert reason in str(e.value)
