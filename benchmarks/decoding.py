"""Runs methods over prompts, each alone and cold: what the tables of the decoding papers measure.

Methods take turns prompt by prompt, in an order that reverses every time; each has slots of its own, which are emptied
before every prompt, so that nothing is cached but what the method itself has computed.
"""

from __future__ import annotations

import time
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field

from redraft.backends.pair import drafting_backend
from redraft.decode import decode
from redraft.drive import Lane, run_together
from redraft.eval.measure import Figure
from redraft.eval.quality import quality
from redraft.languages import parse_language
from redraft.method import Method, Setup, Value
from redraft.methods import get_method
from redraft.prompt import Prompter, Request
from redraft.session import longest_output
from redraft.types import DRAFT_MODEL, TARGET, Backend, Output, Prompt, Tally


@dataclass(slots=True)
class Entry:
    """One line of a table: a method with options, and what it has done so far."""

    method: Method
    options: dict[str, Value]
    label: str
    backends: dict[str, Backend] = field(default_factory=dict)
    tally: Tally = field(default_factory=Tally)
    outputs: list[Output] = field(default_factory=list)
    seconds: float = 0.0

    @classmethod
    def named(cls, name: str, **options: Value) -> Entry:
        """A method by name with options that differ from its defaults."""
        method = get_method(name)
        shown = " ".join(f"{key}={value}" for key, value in options.items())
        return cls(method, method.check(options), shown)

    def run(self, prompt: Prompt, previous: tuple[int, ...] = ()) -> None:
        """Decode after one prompt, alone."""
        target = self.backends[TARGET]
        setup = Setup(self.options, target.end_tokens, target.pad_token)
        drafter, rule = self.method.build(setup)
        asking = decode(
            prompt.ids,
            drafter,
            rule,
            previous=previous,
            source=prompt.source,
            encoder=prompt.encoder,
            end_tokens=target.end_tokens,
            limit=longest_output(prompt),
            stop_loops=True,
        )
        slots = {name: backend.open_slot() for name, backend in self.backends.items()}
        started = time.perf_counter()
        output = run_together([Lane(asking, slots)], self.backends)[0]
        self.seconds += time.perf_counter() - started
        for name, slot in slots.items():
            self.backends[name].close_slot(slot)
        self.tally.add(output)
        self.outputs.append(output)

    def text(self, index: int) -> str:
        """One output as text."""
        return text_of(self.backends[TARGET], self.outputs[index].tokens)


def text_of(backend: Backend, tokens: Sequence[int]) -> str:
    """An output as text."""
    return b"".join(map(backend.token_bytes, tokens)).decode(errors="replace").strip()


def prompts(backend: Backend, sources: Sequence[str], to: str, drafts: Sequence[str] = ()) -> list[Prompt]:
    """The prompt of every source by the model's own template.

    Args:
        drafts: a translation of each source, which the prompt then holds as that of an earlier, equal sentence.
    """
    prompter = Prompter.for_model(backend.metadata, parse_language("en"), parse_language(to))
    made = []
    for index, source in enumerate(sources):
        context = ((source, drafts[index]),) if drafts else ()
        ids = prompter.encode(Request(source, context), backend.tokenize)
        made.append(Prompt(ids, tuple(backend.tokenize(source))))
    return made


def run(entries: Sequence[Entry], target: Backend, small: Backend | None, prompts: Iterable[Prompt]) -> None:
    """Decode after every prompt with every entry, taking turns.

    Raises:
        CapabilityError: a method needs what the backends lack.
    """
    for entry in entries:
        entry.method.require(target.capabilities)
        entry.backends = {TARGET: target}
        if entry.method.draft_model:
            entry.backends[DRAFT_MODEL] = drafting_backend(entry.method, entry.options, target, small)
    for number, prompt in enumerate(prompts):
        for entry in entries if number % 2 == 0 else reversed(entries):
            entry.run(prompt)


def rows(entries: Sequence[Entry], references: Sequence[str], language: str) -> list[dict[str, Figure]]:
    """The figures of every entry; the ratios are over the first one, which is to be ``ar``."""
    base = entries[0]
    found: list[dict[str, Figure]] = []
    for entry in entries:
        tally = entry.tally
        scores = quality([entry.text(index) for index in range(len(entry.outputs))], references, language)
        same = sum(a.tokens == b.tokens for a, b in zip(entry.outputs, base.outputs, strict=True))
        found.append(
            {
                "method": entry.method.name,
                "options": entry.label,
                "target_language": language,
                "updates": tally.updates,
                "output_tokens": tally.tokens,
                "target_passes": tally.passes,
                "draft_passes": tally.draft_passes,
                "mean_acceptance_length": round((tally.tokens + tally.finished) / tally.passes, 3),
                "draft_acceptance": round(tally.draft_acceptance, 4) if tally.drafted else None,
                "output_acceptance": round(tally.output_acceptance, 4) if tally.drafted else None,
                "same_as_ar": same,
                "seconds": round(entry.seconds, 2),
                "speedup": round(tally.tokens / entry.seconds / (base.tally.tokens / base.seconds), 3),
                "bleu": round(scores.bleu, 2),
                "chrf": round(scores.chrf, 2),
            }
        )
    return found
