"""Lines of tables as texts: a method, and settings with one or several values, such as ``ssbd beta=0,0.2 mask_k=3``.

Several values, with commas between, are a line each; those of several settings are combined.  A setting is an option of
the method, or one of the run:

    lines     complete lines that never change, each after at most so many seconds
    threads   CPU threads
    batch     number of segments that are translated at once
    small     draft model, instead of the one of the command
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from itertools import product
from typing import Any

from redraft.decoding.method import Value
from redraft.decoding.methods import all_methods, get_method
from redraft.errors import OptionError
from redraft_bench.bench.peers import PEERS
from redraft_bench.eval.contender import Contender

#: Setting of a run -> how its value is read.
GENERAL: Mapping[str, Callable[[str], Any]] = {"lines": float, "threads": int, "batch": int, "small": str}


def contenders(lines: Sequence[str], language: str, small: str = "") -> list[Contender]:
    """Return the contenders of lines into a language, each once.

    Args:
        lines: the lines.
        language: target language.
        small: draft model of methods that need one.

    Raises:
        OptionError: a line is invalid.
    """
    found: dict[str, Contender] = {}
    for line in lines:
        for each in _combined(line, language, small):
            found.setdefault(each.name, each)
    return [*found.values()]


def _combined(line: str, language: str, small: str) -> list[Contender]:
    method, *settings = line.split() or [""]
    if method not in PEERS:
        get_method(method)  # fails if there is none
    axes: dict[str, list[str]] = {}
    for setting in settings:
        name, sign, values = setting.partition("=")
        if not (name and sign and all(values.split(","))):
            raise OptionError(f"--line: must be METHOD NAME=VALUE,VALUE ..., not {setting!r} in {line!r}")
        if name in axes:
            raise OptionError(f"--line: {name} is given twice in {line!r}, so join its values with commas")
        axes[name] = values.split(",")
    return [
        _contender(method, dict(zip(axes, values, strict=True)), language, small) for values in product(*axes.values())
    ]


def _contender(name: str, settings: Mapping[str, str], language: str, small: str) -> Contender:
    method = all_methods().get(name)
    own = {each.name for each in method.all_options} if method else set()
    options = {key: _value(text) for key, text in settings.items() if key in own or key not in GENERAL}
    given = {key: _general(key, text) for key, text in settings.items() if key not in options}
    if method:
        method.check(options)
        if method.small_model:
            given.setdefault("small", small)
    return Contender(name, language, tuple(options.items()), **given)


def _general(name: str, text: str) -> Any:
    try:
        return GENERAL[name](text)
    except (KeyError, ValueError):
        raise OptionError(f"--line: {name}={text} is not a valid value") from None


def _value(text: str) -> Value:
    for kind in (int, float):
        try:
            return kind(text)
        except ValueError:
            continue
    return text
