"""Tell the text of a request from what a caller's prompt puts around it.

A speaker may say anything that a prompt may: "Translate our values into action: ...", or two equal emoji.  So a
wrapper is removed only if the request's prompt names it, if nothing else names the target language, or if the caller
repeats it around other texts.  Everything else is text.
"""

from __future__ import annotations

import re
import time
import unicodedata
from collections import OrderedDict
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

from redraft.serve.http.compat.callers import likeness, units

#: An instruction before the text, such as "Translate into German:".
_INSTRUCTION = re.compile(
    r"(?:(?:(?:please|now|kindly|can|could|you)\W+){0,3}translate\b[^:]{0,500}"
    r"|(?:the )?(?:text|sentence|source|input)(?: to (?:be )?translated?)?):\s*(?=\S)",
    re.IGNORECASE,
)
#: A pair of marks around a text.  Spaces are tried once, or many of them would take the third power of their number.
_TAGS = re.compile(r"(?P<mark><(?P<tag>\w+)>)\s*+(?P<text>(?:.*\S)?)\s*</(?P=tag)>", re.DOTALL)
_FENCES = re.compile(r"(?P<mark>```|\"\"\")\s*+(?P<text>(?:.*\S)?)\s*(?P=mark)", re.DOTALL)
#: What prompts call a fence.
_CALLED = {"```": "backtick", '"""': "triple quote"}
#: Minimum number of words that two texts must have to show that they are different texts in one wrapper.
_TELLING = 3
#: Maximum number of callers, and of wrappers per caller, that are remembered.
_CALLERS, _WRAPPERS = 1000, 20


@dataclass(frozen=True, slots=True)
class Wrapped:
    """A text and what was sent before and after it; concatenated, they are the original request."""

    before: str
    text: str
    after: str

    @classmethod
    def cut(cls, whole: str, begin: int, end: int) -> Wrapped:
        """Take ``whole[begin:end]``, stripped, as the text."""
        text = whole[begin:end]
        begin += len(text) - len(text.lstrip())
        end = begin + len(text.strip())
        return cls(whole[:begin], whole[begin:end], whole[end:])

    def inner(self, begin: int, end: int) -> Wrapped:
        """Take ``text[begin:end]``, stripped, as the text."""
        found = Wrapped.cut(self.text, begin, end)
        return Wrapped(self.before + found.before, found.text, found.after + self.after)


def marked(sent: str) -> Wrapped | None:
    """Find the text in a pair of symbols (such as emoji) at the end of ``sent``; None if there is no pair."""
    end = len(sent.rstrip())
    begin = end
    while (
        begin and sent[begin - 1] >= "\u2190" and unicodedata.category(sent[begin - 1]) == "So"
    ):  # not the degree sign
        begin -= 1
    mark = sent[begin:end]
    opening = sent.rfind(mark, 0, begin) if mark else -1
    if opening < 0 or not sent[opening + len(mark) : begin].strip():
        return None
    return Wrapped.cut(sent, opening + len(mark), begin)


@dataclass(slots=True)
class _Habits:
    """What a caller puts around texts: wrapper -> the latest text in it, and the wrappers seen around several."""

    latest: OrderedDict[tuple[str, str], str] = field(default_factory=OrderedDict)
    repeated: set[tuple[str, str]] = field(default_factory=set)
    touched: float = 0.0


class Instructions:
    """The wrappers that callers repeat.

    Args:
        clock: returns seconds.
    """

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._callers: OrderedDict[tuple[str, ...], _Habits] = OrderedDict()

    def text_of(
        self, caller: tuple[str, ...], prompt: str, asked: Sequence[str], names_target: Callable[[str], bool]
    ) -> tuple[Wrapped, str]:
        """Return the last of the user's messages as text and wrapper, and the prompt with the instruction in it.

        Args:
            caller: what identifies the caller.
            prompt: the prompt beside the messages; it may be empty.
            asked: the user's messages, the earlier ones of the chat first.
            names_target: returns whether an instruction names the target language, and the prompt does not.
        """
        habits = self._callers.setdefault(caller, _Habits())
        self._callers.move_to_end(caller)
        habits.touched = self._clock()
        if len(self._callers) > _CALLERS:
            self._callers.popitem(last=False)
        for earlier in asked[:-1]:
            _unwrap(habits, prompt, earlier, names_target)
        return _unwrap(habits, prompt, asked[-1], names_target)

    def forget(self, seconds: float) -> None:
        """Forget callers that have sent nothing for as long."""
        late = self._clock() - seconds
        for caller in [caller for caller, habits in self._callers.items() if habits.touched < late]:
            del self._callers[caller]


def _unwrap(habits: _Habits, prompt: str, sent: str, names_target: Callable[[str], bool]) -> tuple[Wrapped, str]:
    found = Wrapped.cut(sent, 0, len(sent))
    instructed = False
    if match := _INSTRUCTION.match(found.text):
        inner = found.inner(match.end(), len(found.text))
        if instructed := names_target(match[0]) or _repeats(habits, inner):
            found, prompt = inner, f"{prompt}\n{match[0]}"
    if pair := marked(found.text):
        inner = found.inner(len(pair.before), len(found.text) - len(pair.after))
        wordless = not any(map(str.isalnum, pair.before))
        if pair.after.strip() in prompt or (wordless and (instructed or _repeats(habits, inner))):
            return inner, prompt
    for form in (_TAGS, _FENCES):
        if (match := form.fullmatch(found.text)) and match["text"]:
            inner = found.inner(*match.span("text"))
            mark = match["mark"]
            if instructed or mark in prompt or _CALLED.get(mark, mark) in prompt.casefold() or _repeats(habits, inner):
                return inner, prompt
    return found, prompt


def _repeats(habits: _Habits, found: Wrapped) -> bool:
    """Remember a text; return whether its wrapper has been around a different one."""
    wrapper = found.before, found.after
    if wrapper in habits.repeated:
        return True
    earlier = habits.latest.pop(wrapper, "")
    habits.latest[wrapper] = found.text
    if len(habits.latest) > _WRAPPERS:
        habits.latest.popitem(last=False)
    told = all(len(list(units(text))) >= _TELLING for text in (earlier, found.text))
    if not told or likeness(earlier, found.text) or likeness(found.text, earlier):
        return False
    habits.repeated.add(wrapper)
    return True
