"""The draft view: each update of a stream with its translation, and the origin of each token."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import islice

from redraft.captions.events import Caption, Event, Failure, Update
from redraft.decoding.types import Provenance
from redraft_bench.viz.labels import texts
from redraft_bench.viz.trace import Given, Token, Trace

#: Origins of tokens in the order of the legend, with their labels.
ORIGINS: dict[Provenance | Given, str] = {
    Provenance.SHOWN: "kept from what was shown",
    Provenance.PREVIOUS: "kept from what was hidden",
    Provenance.PROMPT: "kept from the prompt",
    Provenance.GENERATED: "kept from generated text",
    Provenance.MODEL: "kept from the small model's draft",
    Provenance.ITERATION: "kept from the last iteration",
    Provenance.RECYCLED: "kept from an earlier prediction",
    Given.CORRECTION: "correction: the draft was rejected here",
    Given.BONUS: "bonus: the token after a fully accepted draft",
    Given.ALONE: "decoded in a pass without a draft",
}


@dataclass(frozen=True, slots=True)
class Cell:
    """A token of a translation.

    Attributes:
        text: the text that it adds; empty if it is only part of a character.
        token: its data.
        shown: whether the reader sees it.
    """

    text: str
    token: Token
    shown: bool = True


@dataclass(frozen=True, slots=True)
class DraftRow:
    """An update and its translation.

    Attributes:
        utterance: name of the utterance.
        seq: number of the update in its utterance.
        source: text of the update.
        final: whether the update is final.
        cells: its translation; empty if nothing was decoded.
        passes: target passes of this update.
        drafted: draft tokens proposed in this update.
        accepted: draft tokens accepted in this update.
        note: remark, such as why nothing was decoded.
    """

    utterance: str
    seq: int
    source: str
    final: bool
    cells: tuple[Cell, ...] = ()
    passes: int = 0
    drafted: int = 0
    accepted: int = 0
    note: str = ""

    @property
    def acceptance(self) -> str:
        """Accepted of drafted tokens, as a fraction; a dash if nothing was drafted."""
        return f"{self.accepted}/{self.drafted}" if self.drafted else "–"


def view(
    items: Iterable[Update | Failure],
    translate: Callable[[Update], list[Event]],
    traces: Sequence[Trace],
    token_bytes: Callable[[int], bytes],
    limit: int,
) -> Iterator[DraftRow]:
    """Translate a stream into one language; yield a row per update.

    Args:
        items: the stream; invalid lines become rows with a note.
        translate: translates one update.
        traces: the list to which ``translate`` appends its traces (`redraft_bench.viz.trace.traced`).
        token_bytes: returns the bytes of a token.
        limit: maximum number of rows.
    """
    for item in islice(items, limit):
        if isinstance(item, Failure):
            yield DraftRow(item.utterance or "", item.seq or 0, "", False, note=item.message)
            continue
        before = len(traces)
        events = translate(item)
        trace = traces[before] if len(traces) > before else None
        yield _row(item, events, trace, token_bytes)


def _row(update: Update, events: Sequence[Event], trace: Trace | None, token_bytes: Callable[[int], bytes]) -> DraftRow:
    notes = [event.message for event in events if isinstance(event, Failure)]
    captions = [event.text for event in events if isinstance(event, Caption)]
    empty = DraftRow(update.utterance, update.seq, update.text, update.final)
    if trace is None:
        shown = "".join(captions)
        if not notes:
            notes = [f"the same source: no pass; still {shown!r}" if shown else "nothing to translate"]
        return replace(empty, note="; ".join(notes))
    return replace(
        empty,
        cells=tuple(_cells(trace, token_bytes, captions[-1] if captions else None)),
        passes=len(trace.steps),
        drafted=trace.drafted,
        accepted=trace.accepted,
        note="; ".join(notes),
    )


def _cells(trace: Trace, token_bytes: Callable[[int], bytes], shown: str | None) -> Iterator[Cell]:
    text_before = ""
    tokens = [token for token in trace.tokens if token.id not in trace.end_tokens]
    for token, text in zip(tokens, texts([token_bytes(token.id) for token in tokens]), strict=True):
        text_before += text
        visible = shown is None or len(text_before.strip()) <= len(shown)
        yield Cell(text, token, visible)


def summary_of(rows: Sequence[DraftRow]) -> str:
    """Return a line with the totals of all rows."""
    tokens, passes = sum(len(row.cells) for row in rows), sum(row.passes for row in rows)
    drafted, accepted = sum(row.drafted for row in rows), sum(row.accepted for row in rows)
    share = f", {accepted} of {drafted} draft tokens accepted" if drafted else ""
    return f"{len(rows)} updates, {tokens} tokens in {passes} passes{share}"
