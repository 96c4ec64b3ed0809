"""A model's own chat template.

It is a Jinja program.  It is rendered as in transformers, in a sandbox, since it comes with the model file.
Differences between templates are found by test renderings: whether there is a system role, and what is put before and
after an answer.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from contextlib import suppress
from datetime import datetime
from functools import partial

from jinja2 import TemplateError, nodes
from jinja2.ext import Extension
from jinja2.parser import Parser
from jinja2.sandbox import ImmutableSandboxedEnvironment

from redraft.captions.answer import closed, has_thoughts, without_thoughts
from redraft.errors import ModelError

#: The names by which templates are asked for answers without thoughts.
_NO_THOUGHTS = {
    "enable_thinking": False,
    "thinking": False,
    "reasoning": False,
    "thinking_budget": 0,
    "thinking_mode": "disabled",
}


class ChatTemplate:
    """A model's own chat template.

    The instruction is the system message or, without a system role, the start of the first user turn.

    Args:
        text: the Jinja program from the model's metadata.
        end: text to use for the model's end token, which the metadata lack.

    Raises:
        ModelError: the Jinja program is invalid.
    """

    def __init__(self, text: str, *, end: str) -> None:
        environment = ImmutableSandboxedEnvironment(
            trim_blocks=True, lstrip_blocks=True, extensions=["jinja2.ext.loopcontrols", _Generation]
        )
        # Plain JSON, as chat templates expect; Jinja's own filter escapes HTML.
        environment.filters["tojson"] = partial(json.dumps, ensure_ascii=False)
        environment.globals["raise_exception"] = _raise_exception
        # Fixed at load time: a clock in the prompt would prevent any reuse of the cache.
        environment.globals["strftime_now"] = datetime.now().strftime
        try:
            self._template = environment.from_string(text)
        except TemplateError as error:
            raise unusable(error) from error
        self._end = end
        self._system_role = False
        with suppress(ModelError):
            self._system_role = "INSTRUCTION" in self._run([("system", "INSTRUCTION"), ("user", "QUESTION")])
        #: What stands between the start of the assistant's turn and its text, such as an empty block of thoughts or the
        #: name of a channel; usually empty.
        self._gap = ""
        #: Text after an answer, such as ``<end_of_turn>``; empty if the template cannot render an answer.
        self.turn_end = ""
        with suppress(ModelError):
            asked = self._run([("user", "QUESTION")])
            answered = self._run([("user", "QUESTION"), ("assistant", "ANSWER")], answer=False)
            self.turn_end = answered.removeprefix(asked).partition("ANSWER")[2]
            # Earlier answers often stand without the empty block of thoughts.
            start = next((each for each in (asked, without_thoughts(asked)) if answered.startswith(each)), answered)
            gap, answer, _ = answered.removeprefix(start).partition("ANSWER")
            if answer and (start == asked or not has_thoughts(gap)):
                self._gap = gap

    def __call__(self, instruction: str, earlier: Sequence[tuple[str, str]], question: str, header: str) -> str:
        """Render a conversation, up to and including the start of the next answer.

        Args:
            instruction: what the model is to do.
            earlier: questions and their answers, oldest first.
            question: what the user asks now.
            header: text that starts every answer, such as "German:".

        Raises:
            ModelError: the template fails, or drops the instruction.
        """
        turns: list[tuple[str, object]] = []
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

    def ask(self, content: str) -> str:
        """Render a single message of the user, up to the start of the answer.

        Args:
            content: its text.

        Raises:
            ModelError: the template fails.
        """
        return f"{self._run([('user', content)])}{self._gap}"

    def render(
        self, turns: Sequence[tuple[str, object]], told: Mapping[str, object] | None = None, *, answer: bool = True
    ) -> str:
        """Render messages as they are, up to the start of the next answer.

        Args:
            turns: role and content of each message.
            told: arguments of the template; by default it is asked for answers without thoughts.
            answer: whether the start of an answer follows.

        Raises:
            ModelError: the template fails.
        """
        given = {**_NO_THOUGHTS, "tools": None, "documents": None, **(told or {})}
        given |= {"bos_token": "", "eos_token": self._end}  # the tokenizer adds the start token
        messages = [{"role": role, "content": content} for role, content in turns]
        try:
            return str(self._template.render(given, messages=messages, add_generation_prompt=answer))
        except Exception as error:  # a template may raise anything
            raise unusable(error) from error

    def _run(self, turns: Sequence[tuple[str, object]], answer: bool = True) -> str:
        return closed(self.render(turns, answer=answer))  # some models always think


def unusable(reason: object) -> ModelError:
    """Return the error for an unusable template: the reason, and what to do."""
    text = " ".join(str(reason).split()) or type(reason).__name__
    return ModelError(f"the model's chat template cannot be used ({text}): name another with --template")


class _Generation(Extension):
    """Ignores ``{% generation %}``, which marks the assistant's text for training."""

    tags = {"generation"}  # noqa: RUF012 - as the base class declares it

    def parse(self, parser: Parser) -> list[nodes.Node]:
        next(parser.stream)
        return parser.parse_statements(("name:endgeneration",), drop_needle=True)


def _raise_exception(message: str) -> None:
    raise TemplateError(message)
