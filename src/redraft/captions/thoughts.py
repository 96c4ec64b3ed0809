"""The marks round a model's thoughts: prompts close them, and captions leave out what stands between them."""

from __future__ import annotations

import re

_NAMES = r"(?:\w+:)?(?:think|thinking|thoughts?|reasoning|reflection)(?::\w+)?"
#: Marks that are not tags, by what closes them: of Magistral, Kimi-VL, Command A, Gemma 4, gpt-oss, Apriel and Granite.
_PAIRS = {
    "[THINK]": "[/THINK]",
    "◁think▷": "◁/think▷",
    "<|START_THINKING|>": "<|END_THINKING|>",
    "<|channel>thought": "<channel|>",
    "<|channel|>analysis<|message|>": "<|end|><|start|>assistant<|channel|>final<|message|>",
    "Here are my reasoning steps:": "[BEGIN FINAL RESPONSE]",
    "Here is my thought process:": "Here is my response:",
}
_OPENING = rf"<({_NAMES})>|{'|'.join(map(re.escape, _PAIRS))}"
_CLOSING = rf"</{_NAMES}>|{'|'.join(map(re.escape, _PAIRS.values()))}"
_OPENS, _ENDS_OPEN = re.compile(rf"\s*({_OPENING})"), re.compile(rf"({_OPENING})\s*$")
_CLOSES, _EMPTY = re.compile(rf"\s*({_CLOSING})"), re.compile(rf"({_OPENING})\s*({_CLOSING})\s*$")
#: Characters of a prompt's end in which a mark is searched.
_END = 200


def closed(prompt: str) -> str:
    """Return a prompt without open thoughts at its end."""
    found = _ENDS_OPEN.search(prompt, max(0, len(prompt) - _END))
    return f"{prompt.rstrip()}\n\n{_closing(found)}\n\n" if found else prompt


def without_thoughts(prompt: str) -> str:
    """Return a prompt without an empty block of thoughts at its end."""
    found = _EMPTY.search(prompt, max(0, len(prompt) - _END))
    return prompt[: found.start()] if found and found[3] == _closing(found) else prompt


def has_thoughts(text: str) -> bool:
    """Whether a text has marks of thoughts."""
    return bool(re.search(f"{_OPENING}|{_CLOSING}", text))


def thoughts_at(text: str) -> int:
    """Return the length of the thoughts with which a text begins, with the marks; all of it if they are not closed."""
    mark = _closing(_OPENS.match(text))
    if not mark:
        found = _CLOSES.match(text)
        return found.end() if found else 0
    end = text.find(mark)
    return end + len(mark) if end >= 0 else len(text)


def _closing(found: re.Match[str] | None) -> str:
    if found is None:
        return ""
    tag = found[2]
    return f"</{tag}>" if tag else _PAIRS[found[1]]
