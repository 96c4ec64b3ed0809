"""A contender: what one line of a table measures."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from redraft.decoding.method import COMMON, Value
from redraft.decoding.methods import all_methods

#: Options of every method that say what is shown.
SHOWN = COMMON.keys() - {"context", "max_tokens"}


@dataclass(frozen=True, slots=True)
class Contender:
    """A method with options, into one language.

    Attributes:
        method: a method of Redraft, or the name of a peer (`redraft_bench.bench.peers`).
        small: name of its draft model.
        lines: shows lines that never change (`redraft.captions.formats.rows`), each after this many seconds at most;
            None for captions that grow.
        threads: CPU threads; None for those of the run.
        batch: number of segments that are translated at once.
    """

    method: str
    language: str
    options: tuple[tuple[str, Value], ...] = ()
    small: str = ""
    lines: float | None = None
    threads: int | None = None
    batch: int = 1

    @property
    def max_tokens(self) -> int:
        """Maximum tokens of a translation."""
        return int(dict(self.options).get("max_tokens", 256))

    @property
    def settings(self) -> str:
        """The options that are set, without those of the display, e.g. ``beta=0.2``."""
        return " ".join(
            f"{name}={value}" if isinstance(value, str) else f"{name}={value:g}"
            for name, value in self.options
            if name not in SHOWN
        )

    @property
    def shows(self) -> str:
        """What is shown of partial captions, e.g. ``2 agree`` or ``mask 3``; empty if everything is."""
        lines = "" if self.lines is None else f"lines, {self.lines:g} s"
        method = all_methods().get(self.method)
        options = label(method.check(dict(self.options))) if method else ""
        return ", ".join(filter(None, (options, lines)))

    @property
    def title(self) -> str:
        """Method and settings."""
        return f"{self.method} {self.settings}".strip()

    @property
    def name(self) -> str:
        """A name that is unique within a run: title, draft model, mask, threads, batch and language."""
        more = (
            *(self.small and f"with {self.small}", self.shows and f"shows {self.shows}"),
            self.threads and f"{self.threads} threads",
            *(self.batch > 1 and f"batches of {self.batch}", self.language),
        )
        return ", ".join(part for part in (self.title, *more) if part)


def label(options: Mapping[str, Value]) -> str:
    """Return what checked options show in words, e.g. ``2 agree, first sight 0.4``; empty if everything is shown."""
    agree, sight, mask = (float(options[name]) for name in ("agree", "first_sight", "mask_k"))
    parts = [f"{agree:g} agree"] if agree > 1 else []
    parts += [f"first sight {sight:g}"] if agree > 1 and sight < 1 else []
    parts += [f"mask {mask:g}{', plain' if options['plain'] else ''}"] if mask else []
    return ", ".join(parts)
