"""Conversations as the text that chat models were trained on: two known templates, and a model's own.

A model's own template is a Jinja program, rendered as transformers does; in a sandbox, since it comes with the model's
file.  What such programs differ in is found out by trying: whether they take a system message, and what they put before
an answer.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from datetime import datetime
from typing import Any, TypeAlias

from jinja2 import TemplateError, nodes
from jinja2.ext import Extension
from jinja2.parser import Parser
from jinja2.sandbox import ImmutableSandboxedEnvironment

from redraft.errors import ModelError

#: ``render(instruction, earlier, question, header)`` -> the text up to and including the beginning of the next answer.
#: ``earlier`` has (question, answer) pairs, oldest first; ``header`` begins every answer ("German:").
Render: TypeAlias = Callable[[str, Sequence[tuple[str, str]], str, str], str]


def tower(instruction: str, earlier: Sequence[tuple[str, str]], question: str, header: str) -> str:
    """SSBD v2, Table 5, Unbabel/Tower-Plus-2B: no system role, and the header stands in the user's turn.

    The table's blank lines part its paragraphs; the model card has single line ends.
    """
    asked = f"\n{header} <end_of_turn>\n<start_of_turn>model\n"
    text = f"<start_of_turn>user\n{instruction}\n"
    for before, answer in earlier:
        text += f"{before}{asked}{answer}<end_of_turn>\n<start_of_turn>user\n"
    return f"{text}{question}{asked}"


def qwen3(instruction: str, earlier: Sequence[tuple[str, str]], question: str, header: str) -> str:
    """SSBD v2, Table 5, Qwen/Qwen3-4B with thinking off; earlier turns have no think block, as in its own template."""
    text = f"<|im_start|>system\n{instruction}<|im_end|>\n"
    for before, answer in earlier:
        text += f"<|im_start|>user\n{before}<|im_end|>\n<|im_start|>assistant\n{header} {answer}<|im_end|>\n"
    return f"{text}<|im_start|>user\n{question}<|im_end|>\n<|im_start|>assistant\n<think>\n\n</think>\n\n{header}"


class ChatTemplate:
    """A model's own chat template; a `Render`.

    The instruction is the system message, or the beginning of the first user turn where there is no system role.

    Args:
        text: the Jinja program, from the model's metadata.
        end: stands for the model's end token, whose text the metadata does not have.

    Raises:
        ModelError: it is no Jinja program.
    """

    def __init__(self, text: str, *, end: str) -> None:
        environment = ImmutableSandboxedEnvironment(
            trim_blocks=True, lstrip_blocks=True, extensions=["jinja2.ext.loopcontrols", _Generation]
        )
        environment.filters["tojson"] = _to_json
        environment.globals["raise_exception"] = _raise_exception
        # The date as of now, for good: a prompt that tells the time would share nothing with the one before.
        environment.globals["strftime_now"] = datetime.now().strftime
        try:
            self._template = environment.from_string(text)
        except TemplateError as error:
            raise unusable(error) from error
        self._end = end
        self._system_role = self._has_system_role()
        #: White space that the template has between the start of the assistant's turn and its text, often none.
        self._gap = ""
        #: What it puts behind an answer, such as ``<end_of_turn>``; empty where it cannot be rendered with one.
        self.turn_end = ""
        self._look_around_answer()

    def __call__(self, instruction: str, earlier: Sequence[tuple[str, str]], question: str, header: str) -> str:
        """The conversation as text.

        Raises:
            ModelError: the template fails, or drops the instruction.
        """
        turns: list[tuple[str, str]] = []
        for before, answer in earlier:
            turns += [("user", before), ("assistant", f"{header} {answer}")]
        turns.append(("user", question))
        if self._system_role:
            turns.insert(0, ("system", instruction))
        else:
            turns[0] = ("user", f"{instruction}\n{turns[0][1]}")
        text = self._run(turns)
        if instruction not in text:
            raise unusable("it drops the instruction")
        return f"{text}{self._gap}{header}"

    def _run(self, turns: Sequence[tuple[str, str]], answer: bool = True) -> str:
        try:
            text = self._template.render(
                messages=[{"role": role, "content": content} for role, content in turns],
                add_generation_prompt=answer,
                enable_thinking=False,
                thinking=False,
                tools=None,
                documents=None,
                bos_token="",  # the tokenizer adds it
                eos_token=self._end,
            )
        except Exception as error:  # a template is a program by others: it may raise anything
            raise unusable(error) from error
        opened = text.rstrip().endswith("<think>")  # some models think whatever they are told
        return text.rstrip() + "\n\n</think>\n\n" if opened else text

    def _has_system_role(self) -> bool:
        try:
            return "INSTRUCTION" in self._run([("system", "INSTRUCTION"), ("user", "QUESTION")])
        except ModelError:
            return False

    def _look_around_answer(self) -> None:
        try:
            asked = self._run([("user", "QUESTION")])
            answered = self._run([("user", "QUESTION"), ("assistant", "ANSWER")], answer=False)
        except ModelError:
            return
        gap, _answer, self.turn_end = answered.removeprefix(asked).partition("ANSWER")
        self._gap = gap if gap.isspace() and _answer else ""


def unusable(reason: object) -> ModelError:
    """The refusal of a template, with the reason and the way out in one sentence."""
    text = " ".join(str(reason).split()) or type(reason).__name__
    return ModelError(f"the model's chat template cannot be used ({text}): name another with --template")


class _Generation(Extension):
    """Reads over ``{% generation %}``, with which templates mark the assistant's text for training."""

    tags = {"generation"}  # noqa: RUF012 - as the base class declares it

    def parse(self, parser: Parser) -> list[nodes.Node]:
        next(parser.stream)
        return parser.parse_statements(("name:endgeneration",), drop_needle=True)


def _to_json(value: Any, **options: Any) -> str:
    """Jinja's own filter escapes for HTML; chat templates expect plain JSON."""
    return json.dumps(value, ensure_ascii=False, **options)


def _raise_exception(message: str) -> None:
    raise TemplateError(message)
