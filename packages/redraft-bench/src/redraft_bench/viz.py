"""The draft view: each update of a stream with its translation, and a colour for the origin of each token.

A drafter sees both ends of a pass, so a drafter wrapped around another one can record where tokens came from; the loop,
the acceptance rule and the output do not change.  rich lays the view out, for the terminal and as SVG.
"""

from __future__ import annotations

import codecs
import html
import io
import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from enum import Enum

from rich.cells import cell_len
from rich.console import Console, Group
from rich.table import Table
from rich.terminal_theme import TerminalTheme
from rich.text import Text

from redraft.captions.events import Caption, Event, Failure, Update
from redraft.captions.formats.read import printable
from redraft.decoding.method import Method, Setup
from redraft.decoding.types import ROOT, Asking, Context, Draft, Drafter, Provenance, Rows, Rule, Verdict


class Given(Enum):
    """Why a token came from the model itself rather than from a draft."""

    CORRECTION = "correction"
    BONUS = "bonus"
    ALONE = "alone"


#: Origin of a token -> its name in the legend, and its colour.
ORIGINS: dict[str | Given, tuple[str, str]] = {
    Provenance.SHOWN: ("kept from what was shown", "#8fd19e"),
    Provenance.PREVIOUS: ("kept from what was hidden", "#d7efdc"),
    Provenance.PROMPT: ("kept from the prompt", "#b9d7f4"),
    Provenance.GENERATED: ("kept from generated text", "#a5dfe0"),
    Provenance.MODEL: ("kept from the small model's draft", "#dcc6f0"),
    Provenance.ITERATION: ("kept from the last iteration", "#f3e49b"),
    Given.CORRECTION: ("correction: the draft was rejected here", "#f5a68c"),
    Given.BONUS: ("bonus: the token after a fully accepted draft", "#fcd5b0"),
    Given.ALONE: ("decoded in a pass without a draft", "#e4e7ea"),
}
#: The colour of origins that plug-ins add.
_OTHER = "#e0c3a0"
#: Width of the view in characters.
WIDTH = 96
INK, FAINT = "#1f2328", "#6e7781"
_THEME = TerminalTheme((255, 255, 255), (31, 35, 40), [(0, 0, 0)] * 8)
#: Width of a character in pixels.
_PIXELS = 8.75
#: Without a window around the text, and without fonts from elsewhere.
_SVG = """\
<svg viewBox="0 0 {terminal_width} {terminal_height}" width="{pixels}" xmlns="http://www.w3.org/2000/svg">
<style>
.{unique_id}-matrix {{ font-family: "DejaVu Sans Mono", Menlo, Consolas, monospace; font-size: {char_height}px;
line-height: {line_height}px }}
{styles}
</style>
<defs>{lines}</defs>
<rect width="100%" height="100%" fill="#ffffff"/>
<g>{backgrounds}<g class="{unique_id}-matrix">{matrix}</g></g>
</svg>
"""


@dataclass(slots=True)
class Trace:
    """One decoding: its tokens with their origins, its target passes, and the draft tokens of all drafts.

    Attributes:
        accepted: draft tokens accepted, among them a drafted end token.
    """

    end_tokens: frozenset[int]
    tokens: list[tuple[int, str | Given]] = field(default_factory=list)
    passes: int = 0
    drafted: int = 0
    accepted: int = 0


@dataclass(slots=True)
class Traced(Drafter):
    """A drafter whose drafts and their results are recorded."""

    drafter: Drafter
    trace: Trace

    def drafting(self, context: Context) -> Asking[Draft]:
        """Return the drafter's draft, and record what needs no pass."""
        draft = yield from self.drafter.drafting(context)
        if draft.settled:
            self.trace.drafted += draft.depth
            self._add([*zip(draft.tokens, draft.provenance, strict=True)])
        return draft

    def observe(self, draft: Draft, rows: Rows, verdict: Verdict) -> None:
        """Record a pass."""
        self.trace.passes += 1
        self.trace.drafted += draft.depth
        found: list[tuple[int, str | Given]] = []
        found += [(draft.tokens[node], draft.provenance[node]) for node in verdict.accepted]
        if verdict.token is not None:
            refused = (verdict.accepted[-1] if verdict.accepted else ROOT) in draft.parents
            found.append((verdict.token, Given.CORRECTION if refused else Given.BONUS if len(draft) else Given.ALONE))
        self._add(found)
        self.drafter.observe(draft, rows, verdict)

    def _add(self, found: Sequence[tuple[int, str | Given]]) -> None:
        """Add tokens to the output, up to its end."""
        end = next((place for place, (token, _) in enumerate(found) if token in self.trace.end_tokens), None)
        self.trace.tokens += found[:end]
        with_end = found if end is None else found[: end + 1]
        self.trace.accepted += sum(isinstance(origin, str) for _, origin in with_end)


def traced(method: Method, traces: list[Trace]) -> Method:
    """Return the method with tracing; each decoding appends its trace to ``traces``."""

    def trace(drafter: Drafter, setup: Setup) -> Drafter:
        traces.append(Trace(setup.end_tokens))
        return Traced(drafter, traces[-1])

    return wrapped(method, trace)


def wrapped(method: Method, wrap: Callable[[Drafter, Setup], Drafter]) -> Method:
    """Return the method with another drafter around its own."""

    def build(setup: Setup) -> tuple[Drafter, Rule]:
        drafter, rule = method.build(setup)
        return wrap(drafter, setup), rule

    return replace(method, build=build)


@dataclass(frozen=True, slots=True)
class DraftRow:
    """An update, or a failure without one, with the trace of its translation.

    Attributes:
        trace: None if nothing was decoded.
        texts: the text that each token adds.
        shown: number of tokens that the reader sees.
        note: remark, such as why nothing was decoded.
    """

    update: Update | None
    trace: Trace | None = None
    texts: tuple[str, ...] = ()
    shown: int = 0
    note: str = ""

    @property
    def accepted(self) -> int:
        """Draft tokens accepted, among them a drafted end token."""
        return self.trace.accepted if self.trace else 0


def view(
    items: Iterable[Update | Failure],
    translate: Callable[[Update], list[Event]],
    traces: Sequence[Trace],
    token_bytes: Callable[[int], bytes],
) -> Iterator[DraftRow]:
    """Translate a stream into one language; yield a row per update.

    Args:
        items: the stream; invalid lines become rows with a note.
        translate: translates one update.
        traces: the list to which ``translate`` appends its traces (`traced`).
        token_bytes: returns the bytes of a token.
    """
    for item in items:
        if isinstance(item, Failure):
            yield DraftRow(None, note=item.message)
            continue
        before = len(traces)
        events = translate(item)
        note = "; ".join(event.message for event in events if isinstance(event, Failure))
        captions = [event.text for event in events if isinstance(event, Caption)]
        if len(traces) == before:
            same = f"the same source: no pass; still {captions[-1]!r}" if any(captions) else "nothing to translate"
            yield DraftRow(item, note=note or same)
            continue
        added = texts([token_bytes(token) for token, _ in traces[before].tokens])
        visible = [
            not captions or len("".join(added[:end]).strip()) <= len(captions[-1]) for end in range(1, len(added) + 1)
        ]
        yield DraftRow(item, traces[before], added, sum(visible), note)


def texts(pieces: Sequence[bytes]) -> tuple[str, ...]:
    """Return the (n,) texts that tokens add, with control characters replaced by spaces.

    A character of several tokens is assigned to the token that completes it; the others are empty.  Invalid bytes
    become U+FFFD.
    """
    decoder = codecs.getincrementaldecoder("utf-8")("replace")
    return tuple(printable(decoder.decode(piece, place == len(pieces))) for place, piece in enumerate(pieces, 1))


def summary_of(rows: Sequence[DraftRow]) -> str:
    """Return a line with the totals of all rows."""
    found = [row.trace for row in rows if row.trace]
    drafted = sum(trace.drafted for trace in found)
    share = f", {sum(row.accepted for row in rows)} of {drafted} draft tokens accepted" if drafted else ""
    tokens, passes = sum(len(trace.tokens) for trace in found), sum(trace.passes for trace in found)
    return f"{len(rows)} updates, {tokens} tokens in {passes} passes{share}"


def look(origin: str | Given) -> tuple[str, str]:
    """Return the name of an origin in the legend, and its colour."""
    return ORIGINS.get(origin) or (f"kept from {origin}", _OTHER)


def layout(rows: Sequence[DraftRow], heading: str) -> Group:
    """Return the view: a legend of the origins that occur, and a block for each update."""
    origins = {origin for row in rows if row.trace for _, origin in row.trace.tokens}
    others = sorted(origins - ORIGINS.keys(), key=str)
    looks = [look(origin) for origin in (*ORIGINS, *others) if origin in origins]
    used = [Text.assemble(" ", ("  ", f"on {colour}"), f" {name}") for name, colour in looks]
    legend = Table.grid(padding=(0, 2, 0, 0))
    for place in range(0, len(used), 2):
        legend.add_row(*used[place : place + 2])
    hides = any(row.shown < len(row.texts) for row in rows)
    table = Table(box=None, pad_edge=True, header_style=FAINT, expand=True)
    table.add_column("update")
    table.add_column(f"source, translation{' (italics: not shown yet)' * hides}", ratio=1)
    table.add_column("passes", justify="right")
    table.add_column("accepted", justify="right")
    for row in rows:
        name = Text(f"{row.update.utterance}.{row.update.seq}" if row.update else "")
        name.stylize("bold" if row.update and row.update.final else "")
        lines = [Text(row.update.text, FAINT)] if row.update and row.update.text else []
        lines += [_translation(row)] if row.trace else []
        lines += [Text(row.note, f"italic {FAINT}")] if row.note else []
        passes, share = (str(row.trace.passes), _share(row)) if row.trace else ("", "")
        table.add_row(name, Group(*lines, Text()), passes, share)
    return Group(Text(f" {heading}", "bold"), Text(f" {summary_of(rows)}", FAINT), "", legend, "", table)


def _share(row: DraftRow) -> str:
    """Return accepted of drafted tokens, as a fraction; a dash if nothing was drafted."""
    return f"{row.accepted}/{row.trace.drafted}" if row.trace and row.trace.drafted else "–"


def _translation(row: DraftRow) -> Text:
    found = Text()
    for place, (text, (_, origin)) in enumerate(zip(row.texts, row.trace.tokens if row.trace else (), strict=True)):
        weight = "bold " * (origin is Given.CORRECTION) + "italic " * (place >= row.shown)
        colour = INK if place < row.shown else FAINT
        found.append(text if found else text.lstrip(), f"{weight}{colour} on {look(origin)[1]}")
    return found


def svg(views: Iterable[tuple[Sequence[DraftRow], str]]) -> str:
    """Return views, rows with a heading each, as an SVG document."""
    console = Console(record=True, width=WIDTH, file=io.StringIO(), color_system="truecolor", force_terminal=True)
    for rows, heading in views:
        console.print(layout(rows, heading))
    return as_svg(console, "drafts")


def as_svg(console: Console, name: str) -> str:
    """Return what a recording console has printed as an SVG document; ``name`` is the beginning of its ids."""
    form = _SVG.replace("{pixels}", f"{_PIXELS * console.width:g}")
    document = console.export_svg(theme=_THEME, code_format=form, unique_id=name)
    return re.sub(r'textLength="([\d.]+)"([^>]*)>([^<]*)<', _in_cells, document)


def _in_cells(found: re.Match[str]) -> str:
    """Return a text with its length in cells: rich counts characters, and squeezes those of two cells into one."""
    length, others, text = found.groups()
    plain = html.unescape(text)
    cells = float(length) / len(plain) * cell_len(plain)
    return f'textLength="{cells:g}"{others}>{text}<'
