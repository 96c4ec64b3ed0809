"""Captions and drafts from a chatty model's output."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise

import numpy as np
import pytest

from redraft.captions.answer import OutputReader
from redraft.captions.events import Caption, Update
from redraft.captions.state import START, Settings, Vocabulary
from redraft.captions.translation import Translation
from redraft.decoding.drive import run_together
from redraft.decoding.ends import LineBreaks
from redraft.decoding.methods import all_methods, get_method
from redraft.decoding.types import DRAFT_MODEL, TARGET, Prompt
from tests.fakes import END, RandomModel

PIECES = ["", "?", "Hallo", " Welt", ".", "\n", "\n\n", ".\n\n", "Here is the translation", ":", ":\n", "Note", " "]
PIECES += ['"', '."', ","]
IDS = {piece: number for number, piece in enumerate(PIECES)}
DATA = [piece.encode() for piece in PIECES]
BREAKS = LineBreaks.of(DATA)
PROMPT = (1, 1, 1)


class Scripted(RandomModel):
    """Writes the given pieces after every prompt, then "Note" without end."""

    def __init__(self, *pieces: str) -> None:
        super().__init__(vocabulary=len(PIECES))
        self.script = [IDS[piece] for piece in pieces]

    def logits(self, ids: Sequence[int]) -> np.ndarray:
        row, place = np.full(self.vocabulary, -50.0), len(ids) - len(PROMPT)
        row[self.script[place] if 0 <= place < len(self.script) else IDS["Note"]] = 0.0
        return row

    def token_bytes(self, token: int) -> bytes:
        return DATA[token]


def captions(model: Scripted, sources: Sequence[str], method: str = "ssbd", mark: str = "") -> list[Caption]:
    chosen = get_method(method)
    vocabulary = Vocabulary(model.end_tokens, model.token_bytes, model.tokenize, 200, final_mark=mark, breaks=BREAKS)
    encode = lambda source, *_: Prompt(PROMPT if source == sources[-1] else (*PROMPT[:2], 2))  # noqa: E731
    translation = Translation("de", encode, vocabulary, Settings(chosen))
    found: list[Caption] = []
    backends = {TARGET: model, DRAFT_MODEL: model}
    state = START
    for seq, source in enumerate(sources):
        asking = translation.translate(state, Update("u", seq, source, seq == len(sources) - 1))
        ((events, state),) = run_together([(asking, {TARGET: 0, DRAFT_MODEL: 0})], backends)
        assert all(isinstance(event, Caption) for event in events), events
        found += [event for event in events if isinstance(event, Caption)]
    return found


@pytest.mark.parametrize(
    ("pieces", "text"),
    [
        (["Hallo", " Welt", "\n"], "Hallo Welt"),
        (["Hallo", " Welt", ".\n\n"], "Hallo Welt."),
        (["\n\n", " ", "Hallo", ".", "\n\n"], "Hallo."),
        (["Here is the translation", ":\n", "Hallo", ".\n\n"], "Here is the translation:"),
        (["Hallo", ":", "\n"], "Hallo:"),
        (["Hallo", ":\n"], "Hallo:"),
        (['"', "Hallo", " Welt", '."', "\n"], "Hallo Welt."),
        (['"', "Hallo", '"', " Welt", "\n"], '"Hallo" Welt'),
        (['"', "Hallo", '"', " Welt", '."', "\n"], '"Hallo" Welt."'),
    ],
)
@pytest.mark.parametrize("method", ["aasd", "speculative-sampling", "ssbd"])
def test_caption(pieces: list[str], text: str, method: str) -> None:
    first, last = captions(Scripted(*pieces), ["Hello", "Hello world."], method)
    assert (last.text, last.cut) == (text, False)
    assert f"{first.text} {first.unstable}".split() == text.split()


def test_draft_reused() -> None:
    model = Scripted("Hallo", " Welt", ".\n\n")
    captions(model, ["Hello", "Hello world."])
    assert len(model.requests) == 4  # three for the first update, and one for the second


class Growing(Scripted):
    r"""Writes "Hallo.\n\n", and once the source is whole, "Hallo Welt.\n\n"."""

    def logits(self, ids: Sequence[int]) -> np.ndarray:
        whole = tuple(ids[: len(PROMPT)]) == PROMPT
        self.script = [IDS[piece] for piece in ("Hallo", *([" Welt"] if whole else []), ".\n\n")]
        return super().logits(ids)


@pytest.mark.parametrize("method", sorted(all_methods()))
def test_token_with_text_before_break_ends_no_draft(method: str) -> None:
    """Continuous decoding accepts the draft as it is, and would never write more."""
    assert captions(Growing(), ["Hello", "Hello world."], method)[1].text == "Hallo Welt."


def test_quotes_of_source() -> None:
    answer = OutputReader('He said "hello".', BREAKS, DATA.__getitem__)
    assert b"".join(answer.pieces([IDS[piece] for piece in ('"', "Hallo", '."')])) == b'"Hallo."'


MARKS = [('"', '"'), ("„", "“"), ("„", '"'), ("”", "”"), ("「", "」"), ("« ", " »")]


def of_bytes(text: str, source: str = "Hello.", size: int = 1) -> str:
    """What is left of an output whose tokens have ``size`` bytes each."""
    data = text.encode()
    tokens = [data[start : start + size] for start in range(0, len(data), size)]
    answer = OutputReader(source, BREAKS, tokens.__getitem__)
    return b"".join(answer.pieces(range(len(tokens)))).decode(errors="ignore")


@pytest.mark.parametrize(("opening", "closing"), MARKS)
@pytest.mark.parametrize("size", [1, 2, 4])
def test_quotes_from_first_token_on(opening: str, closing: str, size: int) -> None:
    whole = f" {opening}Hallo Welt.{closing}"
    shown = [of_bytes(whole[:end], size=size).strip() for end in range(len(whole) + 1)]
    assert shown[-1] == "Hallo Welt."
    assert all(later.startswith(earlier) for earlier, later in pairwise(shown))


def test_quotes_not_round_whole() -> None:
    for text in ('"Hallo" Welt', '"Hallo", "Welt"', "Hallo „Welt“", "„Hallo „Welt““"):
        assert of_bytes(text) == text
    assert of_bytes('"Hallo', source='He said "hello') == '"Hallo'
    assert of_bytes('"') == ""


class Hesitant(Scripted):
    """Would rather end after its first piece than go on."""

    def logits(self, ids: Sequence[int]) -> np.ndarray:
        row = super().logits(ids)
        row[END] = 1.0 if len(ids) == len(PROMPT) + 1 else row[END]
        return row


@pytest.mark.parametrize("method", ["ar", "ssbd", "redraft"])
@pytest.mark.parametrize(
    ("pieces", "mark", "source", "text"),
    [
        (["Hallo", " Welt", ".", ""], ".", "Hello world.", "Hallo Welt."),
        (["Hallo", " Welt", ".", ""], ".", "hello world", "Hallo Welt."),
        (["Hallo", " Welt", ""], ".", "Hello world.", "Hallo"),  # no sentence either
        (["Hallo", " Welt", ".", ""], "", "Hello world.", "Hallo"),  # a model that needs no mark
        (["Hallo", " Welt", ".", ""], ".", "Hello …", "Hallo Welt."),
        (["Hallo", "?", ""], ".", "Hello.", "Hallo?"),
    ],
)
def test_final_that_stops_short_is_decoded_again(
    method: str, pieces: list[str], mark: str, source: str, text: str
) -> None:
    assert captions(Hesitant(*pieces), [source], method, mark)[-1].text == text


def test_partial_may_stop_short() -> None:
    first, last = captions(Hesitant("Hallo", " Welt", ".", ""), ["Hello world.", "Hello world."], "ssbd", ".")
    assert (first.text + first.unstable, last.text) == ("Hallo", "Hallo Welt.")


class Wordless(Scripted):
    """Writes its pieces and ends, but would nearly as soon have written something else."""

    def __init__(self, *pieces: str, other: str = "Hallo") -> None:
        super().__init__(*pieces)
        self.other = IDS[other]

    def logits(self, ids: Sequence[int]) -> np.ndarray:
        row = super().logits(ids)
        row[self.other] = -1.0
        if ids[-1] == self.other:
            row[END] = 1.0
        return row


@pytest.mark.parametrize("method", ["aasd", "ar", "cd", "redraft", "ssbd"])
@pytest.mark.parametrize(
    "pieces", [[""], [" ", ""], ["?", ""], [".", ""], [" ", ".\n\n"], ['"', '."', ""], ["\n", " ", ""]]
)
def test_final_without_words_is_decoded_again(pieces: list[str], method: str) -> None:
    assert captions(Wordless(*pieces), ["Hello", "Hello."], method)[-1].text == "Hallo"


def test_mark_stays_where_there_is_no_word() -> None:
    assert captions(Wordless("?", "", other="."), ["Hello?"])[-1].text == "?"
    assert captions(Wordless("?", ""), ["?!"])[-1].text == "?!"


class Trailing(Scripted):
    """Ends after a comma, which is a little better than a full stop."""

    def logits(self, ids: Sequence[int]) -> np.ndarray:
        row = super().logits(ids)
        row[IDS["."]] = max(row[IDS["."]], -1.0)
        row[END] = 1.0 if ids[-1] == IDS["."] else row[END]
        return row


def test_comma_at_end_becomes_full_stop() -> None:
    assert captions(Trailing("Hallo", ",", ""), ["Hello there."], "ssbd", ".")[-1].text == "Hallo."
