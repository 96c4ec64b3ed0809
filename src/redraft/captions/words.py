"""What counts as a word: for masks, for the lag of a transcript, for NE in words, and for where lines break.

A word is a run of characters without white space.  Scripts that are written without spaces count by the character, each
with the marks that belong to it: Chinese and Japanese with their punctuation, Thai, Lao, Burmese and Khmer.
"""

from __future__ import annotations

import re

_CJK = "\u3000-\u30ff\u31f0-\u31ff\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff\uff00-\uffef\U00020000-\U0003ffff"
#: Characters of scripts that are written without spaces, for use inside the brackets of a regular expression.
UNSPACED = _CJK + "\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff"
#: Marks that follow the character which they change: of kana, variants, and of Thai, Lao, Burmese and Khmer.
_MARKS = (
    "\u3099\u309a\ufe00-\ufe0f\U000e0100-\U000e01ef\u0e31\u0e33-\u0e3a\u0e47-\u0e4e\u0eb1\u0eb3-\u0ebc\u0ec8-\u0ece"
    "\u102b-\u103e\u1056-\u1059\u105e-\u1060\u17b4-\u17d3\u17dd"
)

WORD = re.compile(f"[{UNSPACED}][{_MARKS}]*|[^\\s{UNSPACED}]+")
#: What a line is not broken within: a word with what closes it and the space behind it.
UNBREAKABLE = re.compile(f"(?:{WORD.pattern})[、。，．！？：；」』）】〉》ー々]*\\s*")
