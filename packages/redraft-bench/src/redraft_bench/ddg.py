"""The decoding dependency graph of a sentence (DDGviz; Santilli et al. 2023, section 3.5, Figures 4 and 6).

Each iteration of Jacobi decoding predicts all open positions from the guesses for the positions before them.

* A token is *final* from the first iteration on after which its position keeps the output's token.  The paper compares
  with greedy decoding, which the output equals.  One that is right by chance and changes again is not final yet.
* It *depends* on the tokens before it that were final earlier: the model knew only these when it predicted the token,
  p(y_6 | y_1:4, x) in Figure 4.  Tokens that become final together do not depend on each other.
* It *waited for* the last of these to become final, the nearest one among equals.  One edge to each token is drawn,
  from there; the paper leaves out redundant edges too.

The end of the output is a token like any other, since it costs a pass.
"""

from __future__ import annotations

import io
import math
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from itertools import islice
from typing import Any

from rich.cells import cell_len, set_cell_size
from rich.console import Console, Group
from rich.text import Text

from redraft.captions.formats.read import printable
from redraft.decoding.types import ROOT, Asking, Context, Draft, Drafter, Rows, Verdict, top_k
from redraft.errors import InputError
from redraft_bench.viz import FAINT, INK, ORIGINS, WIDTH, Given, as_svg

#: Stands for the source, in place of the position of a token.
SOURCE = -1
#: Colours of tokens that become final together, in turn; the one for a token alone.
TOGETHER = ("#8fd19e", "#f3e49b", "#b9d7f4", "#f2c6dc", "#a5dfe0", "#dcc6f0")
ALONE = ORIGINS[Given.ALONE][1]
#: Width of the numbers of iterations.
_MARGIN = 5
#: Narrowest and widest column in cells.
NARROW, WIDE = 4, 12
END = "[end]"


@dataclass(frozen=True, slots=True)
class Guess:
    """What an iteration predicts for a position, with its probability, 0-1."""

    token: int
    probability: float


@dataclass(frozen=True, slots=True)
class Iteration:
    """One target pass.

    Attributes:
        start: number of output tokens before it.
        read: the guesses that it has read, the draft.
        guesses: what it predicts for the positions from ``start`` on, one more than it has read.
    """

    start: int
    read: tuple[int, ...]
    guesses: tuple[Guess, ...]


@dataclass(slots=True)
class Iterations(Drafter):
    """A drafter whose iterations are recorded.

    Attributes:
        output: the tokens so far, with those after an end token in the same pass.
    """

    drafter: Drafter
    passes: list[Iteration] = field(default_factory=list)
    output: list[int] = field(default_factory=list)

    def drafting(self, context: Context) -> Asking[Draft]:
        """Return the drafter's draft.

        Raises:
            InputError: no pass verifies it.
        """
        draft = yield from self.drafter.drafting(context)
        if draft.settled and draft:
            raise InputError("a dependency graph needs a method with the output of greedy decoding, such as jacobi")
        return draft

    def observe(self, draft: Draft, rows: Rows, verdict: Verdict) -> None:
        """Record a pass.

        Raises:
            InputError: the draft is a tree.
        """
        if not draft.is_chain:
            raise InputError("a dependency graph needs a method that drafts no trees, such as jacobi")
        best = [top_k(rows, node, 1)[0] for node in range(ROOT, len(draft))]
        guesses = tuple(Guess(token, math.exp(log)) for token, log in best)
        self.passes.append(Iteration(len(self.output), draft.tokens, guesses))
        self.output += [draft.tokens[node] for node in verdict.accepted]
        self.output += () if verdict.token is None else (verdict.token,)
        self.drafter.observe(draft, rows, verdict)


@dataclass(frozen=True, slots=True)
class Node:
    """A token of the output.

    Attributes:
        text: its text.
        iteration: the one after which it is final, from 1; 0 if it was guessed before the first.
        probability: its probability there, 0-1.
        waited_for: position of the token that it waited for, or `SOURCE`.
        depends_on: number of tokens before it that were final earlier.
        together: whether other tokens became final in the same iteration.
    """

    token: int
    text: str
    iteration: int
    probability: float
    waited_for: int
    depends_on: int
    together: bool


@dataclass(frozen=True, slots=True)
class Graph:
    """The graph with its grid.

    Attributes:
        nodes: (n,) the output with its end token.
        grid: (iterations, n) the text that an iteration guesses for a position; None if it guesses none.
    """

    nodes: tuple[Node, ...]
    grid: tuple[tuple[str | None, ...], ...]

    def as_json(self) -> dict[str, Any]:
        """Return the graph as plain data."""
        tokens = [
            {
                **{"position": place, "token": each.token, "text": each.text, "iteration": each.iteration},
                **{"probability": round(each.probability, 4), "waited_for": each.waited_for},
                "depends_on": [p for p in range(place) if self.nodes[p].iteration < each.iteration],
            }
            for place, each in enumerate(self.nodes)
        ]
        return {"iterations": len(self.grid), "tokens": tokens, "guesses": self.grid}

    @property
    def summary(self) -> str:
        """A sentence with the totals."""
        together = sum(each.together for each in self.nodes)
        return f"{len(self.nodes)} tokens in {len(self.grid)} iterations, {together} of them together with others"


def graph(found: Iterations, end_tokens: frozenset[int], text: Callable[[int], str]) -> Graph:
    """Return the graph of a decoding whose output is the target's greedy one.

    Args:
        found: the iterations of the decoding.
        end_tokens: ids that end an output.
        text: returns the text of a token.

    Raises:
        InputError: the output has tokens that are not the target's most probable ones.
    """
    ends = (place + 1 for place, token in enumerate(found.output) if token in end_tokens)
    output = found.output[: next(ends, len(found.output))]
    final = [_final(found.passes, place, token, end_tokens) for place, token in enumerate(output)]
    together = Counter(iteration for iteration, _ in final)

    def label(token: int) -> str:
        return END if token in end_tokens else text(token)

    nodes = []
    for place, (token, (iteration, probability)) in enumerate(zip(output, final, strict=True)):
        earlier = [(final[p][0], p) for p in range(place) if final[p][0] < iteration]
        waited_for = max(earlier, default=(0, SOURCE))[1]
        shared = together[iteration] > 1
        nodes.append(Node(token, label(token), iteration, probability, waited_for, len(earlier), shared))
    grid = []
    for each in found.passes:
        known = [*[None] * each.start, *(label(guess.token) for guess in _until_end(each, end_tokens))]
        grid.append(tuple([*known, *[None] * len(output)][: len(output)]))
    return Graph(tuple(nodes), tuple(grid))


def _until_end(each: Iteration, end_tokens: frozenset[int]) -> Iterator[Guess]:
    for guess in each.guesses:
        yield guess
        if guess.token in end_tokens:
            return


def _final(passes: Sequence[Iteration], place: int, token: int, end_tokens: frozenset[int]) -> tuple[int, float]:
    """Return the iteration after which a position keeps its token, and the token's probability there."""
    found: tuple[int, float] | None = None
    for number in reversed(range(len(passes))):
        each = passes[number]
        node = place - each.start
        if node < 0:  # settled before
            continue
        guess = next(islice(_until_end(each, end_tokens), node, None), None)
        if guess is None or guess.token != token:
            break
        # What was guessed before the first prediction, by chance or from another draft, is final before that.
        read = each.read[: node + 1]
        held = len(read) > node and read[node] == token and end_tokens.isdisjoint(read[:node])
        found = number if held else number + 1, guess.probability
    if found is None:
        raise InputError("a dependency graph needs a method with the output of greedy decoding, such as jacobi")
    return found


def layout(found: Graph, heading: str, width: int | None = None) -> Group:
    """Return the picture: the graph above the grid, in as many blocks of positions as a width in characters needs.

    A token that waited for one of an earlier block names it.
    """
    columns = [_column(found, place) for place in range(len(found.nodes))]
    colours = _colours(found)
    parts: list[Any] = []
    named, start = False, 0
    while start < len(columns):
        end = start + 1
        while end < len(columns) and (width is None or _MARGIN + sum(columns[start : end + 1]) < width):
            end += 1
        places = range(start, end)
        parts.append(Text())
        parts += [Text(f"{' ' * _MARGIN}{line}".rstrip(), FAINT) for line in _edges(found, columns, places)]
        if any(_is_before(found, place, places) for place in places):
            named = True
            parts.append(_line("", _sources(found, places), columns, places))
        parts += _block(found, columns, colours, places)
        start = end
    return Group(Text(f" {heading}", "bold"), Text(f" {found.summary}", FAINT), *_legend(named), *parts)


def _is_before(found: Graph, place: int, places: range) -> bool:
    """Whether a token waited for one before ``places``."""
    return SOURCE < found.nodes[place].waited_for < places.start


def _sources(found: Graph, places: range) -> list[tuple[str, str]]:
    """Return what tokens waited for before ``places``."""
    before = [_is_before(found, place, places) for place in places]
    waited_for = [found.nodes[found.nodes[place].waited_for].text.strip() for place in places]
    return [(f"←{text}" if named else "", FAINT) for named, text in zip(before, waited_for, strict=True)]


def _column(found: Graph, place: int) -> int:
    """Return the width of a column with the space behind it."""
    texts = [found.nodes[place].text.strip(), *(row[place] or "" for row in found.grid)]
    return 1 + max(NARROW, min(WIDE, max(cell_len(text.strip()) for text in texts)))


def _colours(found: Graph) -> dict[int, str]:
    """Return iteration -> colour."""
    shared = sorted({each.iteration for each in found.nodes if each.together})
    several = {iteration: TOGETHER[turn % len(TOGETHER)] for turn, iteration in enumerate(shared)}
    return {each.iteration: several.get(each.iteration, ALONE) for each in found.nodes}


def _legend(named: bool) -> list[Text]:
    signs = Text(" Probability of a token that is final after this iteration: ", FAINT)
    signs.append(" alone ", f"{INK} on {ALONE}").append(" ")
    signs.append(" with others ", f"{INK} on {TOGETHER[0]}")
    return [
        signs,
        Text(
            f" Grey: guesses that change. Lines{', or ←,' * named} come from the token that others waited for.", FAINT
        ),
    ]


def _edges(found: Graph, columns: Sequence[int], places: range) -> list[str]:
    """Return lines of text with an edge from each token to those that waited for it, if they are not its neighbours.

    Both are among ``places``.
    """
    middles = {place: sum(columns[places.start : place]) for place in places}
    fans: dict[int, list[int]] = {}
    for place in places:
        if found.nodes[place].waited_for in places:
            fans.setdefault(found.nodes[place].waited_for, []).append(place)
    wide = {source: targets for source, targets in fans.items() if targets != [source + 1]}
    lanes: list[list[tuple[int, list[int]]]] = []
    for source, targets in sorted(wide.items(), key=lambda fan: fan[1][-1] - fan[0]):  # short ones below
        free = [lane for lane in lanes if all(targets[-1] < s or t[-1] < source for s, t in lane)]
        if not free:
            lanes.append([])
        (free or lanes)[0 if free else -1].append((source, targets))
    lines = [[" "] * sum(columns[places.start : places.stop]) for _ in lanes]
    for height, lane in enumerate(lanes):
        for source, targets in lane:
            ends = [middles[source], *(middles[place] for place in targets)]
            for x in range(ends[0], ends[-1] + 1):
                lines[height][x] = "─" if lines[height][x] == " " else "┼"
            for x, sign in zip(ends, ["╭", *"┬" * (len(ends) - 2), "╮"], strict=True):
                lines[height][x] = sign
                for below in lines[:height]:
                    below[x] = {" ": "│", "─": "┼", "╭": "├", "╮": "┤", "┬": "┼"}.get(below[x], below[x])
    return ["".join(line) for line in reversed(lines)]


def _block(found: Graph, columns: Sequence[int], colours: dict[int, str], places: range) -> Iterator[Text]:
    """Yield the grid of some positions: their tokens, then a line for each iteration."""
    yield _line("", [(found.nodes[place].text, "bold") for place in places], columns, places)
    for number, row in enumerate(found.grid, 1):
        cells = []
        for place in places:
            node, guess = found.nodes[place], row[place]
            if node.iteration == number or (number == 1 and node.iteration == 0):
                cells.append((f"{node.probability:.2f}".lstrip("0"), f"{INK} on {colours[node.iteration]}"))
            else:
                cells.append((guess if guess is not None and number < node.iteration else "", FAINT))
        if any(text for text, _ in cells):
            yield _line(str(number), cells, columns, places)


def _line(title: str, cells: Sequence[tuple[str, str]], columns: Sequence[int], places: range) -> Text:
    line = Text(f" {title:>3} ", FAINT)
    for (text, style), place in zip(cells, places, strict=True):
        width = columns[place] - 1
        text = text.strip()
        text = f"{set_cell_size(text, width - 1)}…" if cell_len(text) > width else set_cell_size(text, width)
        line.append(text, style).append(" ")
    return line


def label(piece: bytes) -> str:
    """Return the text of a token alone, with a mark for a space; bytes of incomplete characters become U+FFFD."""
    return printable(piece.decode(errors="replace")).strip() or "␣"


def svg(graphs: Sequence[tuple[Graph, str]], width: int | None = None) -> str:
    """Return graphs with their headings as an SVG document, as wide as the longest needs or in blocks of a width."""
    widest = max(
        (_MARGIN + sum(_column(each, place) for place in range(len(each.nodes))) for each, _ in graphs), default=0
    )
    characters = max(WIDTH, widest) if width is None else width
    console = Console(record=True, width=characters, file=io.StringIO(), color_system="truecolor", force_terminal=True)
    for found, heading in graphs:
        console.print(layout(found, heading, width))
    return as_svg(console, "ddg")
