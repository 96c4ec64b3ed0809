"""Re-translation with a library's `generate` for every update; the base of all peers."""

from __future__ import annotations

import time
from dataclasses import dataclass, replace

from redraft.captions.events import Failure, Update
from redraft.captions.languages import parse_language
from redraft.captions.prompt import Prompter, Request
from redraft.captions.sentence import as_sentence, final_mark
from redraft.captions.stabilise import stabilise
from redraft.captions.style import Style
from redraft.decoding.backend import Backend
from redraft.decoding.ends import longest_output
from redraft.decoding.selection import Selection
from redraft.decoding.types import Prompt
from redraft.translator import own_script
from redraft_bench.bench.peers.engine import Generated, Library
from redraft_bench.eval.record import Step


class Task:
    """A peer's task: prompts as ids, and limits, the same as for Redraft's methods.

    Args:
        backend: the model on Redraft; only its tokenizer and metadata are used.
        language: BCP 47 tag of the target language.
        max_tokens: maximum length of one translation in tokens, at least 1.
        style: how prompts are made; of its fields, the source language, the template and the prompt.

    Raises:
        ModelError: the model has no usable prompt template.
    """

    def __init__(self, backend: Backend, language: str, max_tokens: int, style: Style = Style()) -> None:
        self.backend, self.language, self._max_tokens = backend, language, max_tokens
        source, target = parse_language(style.source_language, "source language"), parse_language(language)
        self._prompter = Prompter(backend.metadata, source, target, style.template, style.prompt)
        self._mark = final_mark(backend.metadata)
        self._script = own_script(backend, target)

    def encode(self, text: str, *, final: bool = False) -> tuple[int, ...]:
        """Return the prompt ids, or none for blank text.  A final text is prompted as a complete sentence."""
        request = Request(as_sentence(text, self._mark) if final else text)
        return self._prompter.encode(request, self.backend.encode) if text.strip() else ()

    def selection(self, text: str) -> Selection:
        """Return which tokens the translation of a text may contain, for peers that run on Redraft's backend."""
        return self._script(text)

    def limit(self, prompt: tuple[int, ...]) -> int:
        """Return the maximum number of output tokens after ``prompt``; below 1 if the prompt is too long."""
        return min(self._max_tokens, self.backend.context_length - len(prompt), longest_output(Prompt(prompt)))


@dataclass(frozen=True, slots=True)
class _Output:
    """The latest output of an utterance, with its prompt."""

    prompt: tuple[int, ...] = ()
    tokens: tuple[int, ...] = ()
    finished: bool = True


class Retranslation:
    """Translates every update from scratch; implements `redraft_bench.eval.measure.System`.

    As in Redraft's methods, an unchanged source costs no call.  Unlike there, repetitive output is cut only by the
    length limit, since none of these libraries detects loops.
    """

    def __init__(self, task: Task, engine: Library) -> None:
        self.task, self.engine = task, engine
        self._utterance: str | None = None
        self._forget()

    def _forget(self) -> None:
        """Reset for a new utterance."""
        self._latest = _Output()
        self._reported = False

    def translate(self, update: Update) -> tuple[Step, list[Failure]]:
        """Translate an update; if that fails, the display stays as it was."""
        started, cpu = time.perf_counter(), time.process_time()
        step, failures = self._translate(update)
        # As for Redraft's methods, times include prompt and caption handling, and are 0 if no call was needed.
        if step.seconds:
            seconds, cpu = time.perf_counter() - started, time.process_time() - cpu
            step = replace(step, seconds=seconds, cpu_seconds=step.cpu_seconds + cpu)
        return step, failures

    def _translate(self, update: Update) -> tuple[Step, list[Failure]]:
        if update.utterance != self._utterance:
            self._utterance = update.utterance
            self._forget()
        prompt = self.task.encode(update.text, final=update.final)
        limit = self.task.limit(prompt)
        call, failures = Generated(), []
        if limit < 1:
            failures.append(self._failure(update, f"the source is too long: its prompt has {len(prompt)} tokens"))
        elif prompt != self._latest.prompt:
            call = self._decode(prompt, limit)
            self._latest = _Output(prompt, call.tokens, call.finished)
        if not self._latest.finished and not self._reported:
            self._reported = True
            failures.append(self._failure(update, f"the translation was cut at {len(self._latest.tokens)} tokens"))
        return self._step(update, call), failures

    def _decode(self, prompt: tuple[int, ...], limit: int) -> Generated:
        """Decode a changed prompt; the output may be empty."""
        return self.engine.generate(prompt, limit) if prompt else Generated()

    def _unstable(self) -> int:
        """Number of tokens at the end of the latest output that are hidden until the final update."""
        return 0

    def _failure(self, update: Update, message: str) -> Failure:
        return Failure(message, None, update.utterance, update.seq, self.task.language)

    def _step(self, update: Update, call: Generated) -> Step:
        latest = self._latest
        pieces = [self.task.backend.token_bytes(token) for token in latest.tokens]
        view = stabilise(pieces, final=update.final, mask_k=self._unstable())
        if update.final:
            self._utterance = None
        return Step(
            update.seq,
            update.text,
            update.final,
            update.time,
            len(latest.prompt),
            latest.tokens,
            view.shown,
            view.hidden,
            latest.finished,
            call.seconds,
            call.model_seconds,
            call.passes,
            call.draft_passes,
            cpu_seconds=call.elsewhere,
        )

    def tokenize(self, text: str) -> list[int]:
        """Tokenize with the model's tokenizer, as Redraft's methods do."""
        return self.task.backend.tokenize(text)

    def close(self) -> None:
        """Free the library's model."""
        self.engine.close()
