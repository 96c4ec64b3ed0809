"""Options that several commands share."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated

import typer

from redraft.errors import OptionError
from redraft.methods import get_method

ENGINE = "Engine"
DECODING = "Decoding"

To = Annotated[list[str], typer.Option("--to", "-t", help="Target language: de, ja, zh-CN, ... Repeat for several.")]
Model = Annotated[
    str, typer.Option("--model", "-m", help="demo, demo-small, a name that `redraft models` lists, or a GGUF file.")
]
MethodName = Annotated[str, typer.Option("--method", help="Decoding method; `redraft methods` lists them.")]
Beta = Annotated[
    float | None,
    typer.Option(help="Bias towards the previous translation, 0 to 1 (ssbd: 0.2).", rich_help_panel=DECODING),
]
MoreOptions = Annotated[
    list[str] | None,
    typer.Option("--option", "-o", metavar="NAME=VALUE", help="An option of the method.", rich_help_panel=DECODING),
]
MaskK = Annotated[
    int, typer.Option(help="Hide this many units at the end of partial captions.", rich_help_panel=DECODING)
]
Threads = Annotated[int, typer.Option(help="CPU threads; 0 takes all cores.", rich_help_panel=ENGINE)]
GpuLayers = Annotated[int, typer.Option(help="Layers on the GPU; -1 all that fit.", rich_help_panel=ENGINE)]
ContextLength = Annotated[int, typer.Option(help="Tokens of context for each language.", rich_help_panel=ENGINE)]
Exact = Annotated[
    bool, typer.Option("--exact", help="Bit-equal batched and single passes; slower.", rich_help_panel=ENGINE)
]
Json = Annotated[bool, typer.Option("--json", help="Print one JSON object a line instead of a table.")]


def method_options(method: str, beta: float | None, given: Sequence[str]) -> dict[str, float]:
    """The options of a method from the command line, checked.

    Raises:
        OptionError: not NAME=VALUE with a number, unknown, or out of range.
    """
    options: dict[str, float] = {}
    for text in given:
        name, sign, value = text.partition("=")
        try:
            options[name] = float(value)
        except ValueError:
            sign = ""
        if not sign:
            raise OptionError(f"--option must be NAME=VALUE with a number, not {text!r}")
    if beta is not None:
        options["beta"] = beta
    return get_method(method).check(options)
