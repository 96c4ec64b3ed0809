"""Continue texts other than translations with any method: answers, summaries, code.

Examples:
    >>> from redraft.generator import Generator
    >>> with Generator.open("qwen.gguf", method="aasd") as generator:
    ...     made = generator.generate("Summarise this text in a sentence: ...", print)
"""

from __future__ import annotations

import codecs
import os
from collections.abc import Callable, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass

from redraft.backends.load import MakesPrompts, backends_of, open_models
from redraft.backends.options import NOTHING
from redraft.captions.chat import ChatTemplate
from redraft.captions.metadata import CHAT_KEY
from redraft.decoding.backend import Backend
from redraft.decoding.decode import decode
from redraft.decoding.drive import Watch, open_slots, run_together
from redraft.decoding.method import Method, Setup, Value
from redraft.decoding.methods import get_method
from redraft.decoding.segments import PromptSegment
from redraft.decoding.types import DRAFT_MODEL, TARGET, Output, Prompt, Score
from redraft.errors import ContextOverflow

#: Stands for the user's text while a chat template is rendered: a private-use character, which none strips.
_MARK = "\ue000"


@dataclass(frozen=True, slots=True)
class Generated:
    """A text with its decoding.

    Attributes:
        prompt: ids of the prompt.
        output: ids of the text, with the counts of its decoding.
    """

    text: str
    prompt: tuple[int, ...]
    output: Output


class Generator:
    """Continues one text after another; open one with `open`, or share a loaded model with the constructor.

    Unlike a `redraft.translator.Translator`, it keeps line breaks, and all that the model writes.

    Args:
        backend: a loaded model with a free slot.
        method: decoding method, or its name.
        options: options of the method by name.
        small: the draft model, for methods that need one.
        raw: whether prompts are continued as they are; otherwise, the model's chat template makes them a turn of the
            user if the model has one.  Encoder-decoders read prompts as they are.
        watch: called for every pass.

    Raises:
        OptionError: an option is unknown or out of range.
        CapabilityError: the backend has no free slot or lacks what the method needs, the draft model is missing or has
            another vocabulary.
    """

    def __init__(
        self,
        backend: Backend,
        method: str | Method = "ar",
        options: Mapping[str, Value] | None = None,
        *,
        small: Backend | None = None,
        raw: bool = False,
        watch: Watch | None = None,
    ) -> None:
        self.method = get_method(method)
        self._options = self.method.check(options or {})
        template = "" if raw else backend.metadata.get(CHAT_KEY, "")
        self._chat = ChatTemplate(template, end="") if template else None
        self._watch = watch
        self._memory: dict[type, object] = {}
        with ExitStack() as closing:
            self.backends = backends_of(self.method, self._options, backend, small, closing)
            self._slots = open_slots(self.backends, 1, closing)
            self._closing = closing.pop_all()

    @classmethod
    def open(
        cls,
        model: str | os.PathLike[str],
        *,
        method: str | Method = "ar",
        options: Mapping[str, Value] | None = None,
        raw: bool = False,
        engine: Mapping[str, Value] = NOTHING,
        draft_model: str | os.PathLike[str] | None = None,
    ) -> Generator:
        """Load a model by name or path; `close` frees it. Arguments as for the class and for `Translator.open`."""
        chosen = get_method(method)
        small = None if draft_model is None else os.fspath(draft_model)
        with ExitStack() as owned:
            (models,) = open_models([chosen], os.fspath(model), small, engine, 1, owned)
            made = cls(models[TARGET], chosen, options, small=models.get(DRAFT_MODEL), raw=raw)
            owned.push(made._closing)
            made._closing = owned.pop_all()
        return made

    def generate(self, prompt: str, show: Callable[[str], object] | None = None, *, previous: str = "") -> Generated:
        """Continue a text.

        Args:
            prompt: the text, or the turn of the user.
            show: called with each piece of the text as soon as it is decoded.
            previous: what was written for an earlier prompt, for methods that draft it, such as `ssbd`: a summary of a
                text that has grown since, or a text to edit.

        Raises:
            ContextOverflow: the prompt leaves no room.
            CapabilityError: the model has an encoder and needs a target language.
        """
        target = self.backends[TARGET]
        asked = self._prompt(prompt)
        ids = asked.ids
        length = min(each.context_length for each in self.backends.values())
        limit = min(int(self._options["max_tokens"]), length - len(ids))
        if limit < 1:
            raise ContextOverflow(
                f"the prompt has {len(ids)} tokens and the context length is {length}: shorten it, or raise that"
            )
        draft = tuple(target.tokenize(previous))
        setup = Setup(self._options, target.end_tokens, target.pad_token, self._memory)
        drafter, rule = self.method.build(setup)
        asking = decode(
            asked,
            drafter,
            rule,
            previous=draft,
            shown=len(draft),
            end_tokens=target.end_tokens,
            limit=limit,
        )
        characters, text, count = codecs.getincrementaldecoder("utf-8")("replace"), "", 0

        def write(output: Sequence[int], *, end: bool = False) -> None:
            """Add what an output has more than the last one, in whole characters."""
            nonlocal text, count
            new = characters.decode(b"".join(map(target.token_bytes, output[count:])), end)
            count = len(output)
            if asked.encoder and not text:  # it begins a text, so it has no space before it
                new = new.removeprefix(" ")
            text += new
            if new and show:
                show(new)

        def watch(scores: Sequence[tuple[int, Score]], seconds: float) -> None:
            for _lane, score in scores:
                if score.model == TARGET:
                    write(score.prefix[len(ids) :])
            if self._watch:
                self._watch(scores, seconds)

        (output,) = run_together([(asking, self._slots[0])], self.backends, watch)
        write(output.tokens, end=True)
        return Generated(text, ids, output)

    def _prompt(self, prompt: str) -> Prompt:
        """Return the ids of a prompt; control tokens in the user's text are text."""
        target = self.backends[TARGET]
        if isinstance(target, MakesPrompts):
            return target.plain_prompt(prompt)
        asked = self._chat.ask(_MARK) if self._chat else _MARK
        before, _, after = asked.partition(_MARK)
        parts = PromptSegment(before, True), PromptSegment(prompt, self._chat is None), PromptSegment(after, True)
        ids = tuple(target.encode([part for part in parts if part.text]))
        return Prompt(ids, tuple(target.tokenize(prompt)))

    def close(self) -> None:
        """Release the slots, and free models loaded by `open`."""
        self._closing.close()

    def __enter__(self) -> Generator:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()
