"""``redraft doctor``: how many languages keep up here, what is installed, and the cost of a pass."""

from __future__ import annotations

import os
import platform
import sys
from collections.abc import Mapping
from contextlib import ExitStack, closing
from functools import partial
from typing import TYPE_CHECKING

import click

from redraft import __version__, deadlines, interrupt
from redraft.cli.shared import options
from redraft.cli.shared.notice import notice
from redraft.errors import ModelError

if TYPE_CHECKING:
    from rich.console import Console

#: Length of the draft that the verdict is about: about a line of captions.
_DRAFTED = 16
EXAMPLES = """\b
Examples:
  redraft doctor
  redraft doctor --verbose
  redraft doctor --model ~/models/some-model.gguf --engine gpu_layers=0
"""


@click.command(epilog=EXAMPLES)
@options.gguf_model
@options.engine
@click.option("--verbose", is_flag=True, help="Also print versions, processor and kernels, and what drafts save.")
@click.option("--json", "as_json", is_flag=True, help="Print the time of each pass as JSON Lines instead.")
def doctor(model: str, engine: Mapping[str, float | str], verbose: bool, as_json: bool) -> None:
    """Report how many languages the model can translate live on this machine, and how much memory they need.

    --json prints T(n) instead, the time of a pass of the model over n new tokens. Without drafts, every token takes
    T(1). A draft of n tokens pays off if T(n+1) is well below n times T(1). The spread is the distance of the median
    pass from the fastest.

    If llama.cpp does not work on this processor, it prints the command that fixes it.
    """
    from rich.console import Console
    from rich.progress import track

    from redraft.backends import costs, selftest
    from redraft.backends.costs import pace
    from redraft.backends.load import open_model
    from redraft.backends.options import LlamaOptions, options_of
    from redraft.signature import print_json, signature
    from redraft.tasks import on_thread

    chosen = options_of(LlamaOptions, {"context_length": 512, **engine}, "GGUF models")
    console = Console(highlight=False)
    console.soft_wrap = not console.is_terminal  # only a terminal has a width that lines must not exceed
    tested = selftest.report()
    with ExitStack() as opened:
        backend = opened.enter_context(closing(open_model(model, chosen)))
        interrupt.raises()  # the progress bar hides the cursor
        shown = partial(track, description="measuring", transient=True, disable=as_json or not console.is_terminal)
        measuring, _ = on_thread(partial(costs.measure, backend, shown))
        try:
            measured = measuring.result(costs.MEASURED + deadlines.FIRST_PASS)
        except TimeoutError:
            opened.pop_all()  # nothing can stop its pass, which is still running
            raise ModelError(f"model {model!r} is too slow to be measured: a pass has not ended for minutes") from None
        curve, every = measured.curve, costs.sizes_for(backend)
        path, size = backend.model.path, backend.model.size
        slot = backend.slot_bytes(LlamaOptions().context_length)
    if (largest := curve.sizes[-1]) < every[-1]:
        notice(f"measuring ended after {costs.MEASURED:g} s: passes over more than {largest} tokens are estimated")
    threads, exact = chosen.threads or "adaptive", bool(chosen.exact)
    signed = signature(path, "synthetic", "none", seed=0, threads=threads, exact=exact)
    if as_json:
        rows = [
            {"new_tokens": size, "milliseconds": seconds * 1e3, "over_one": seconds / curve(1), "spread": spread}
            for size, seconds, spread in zip(curve.sizes, curve.seconds, measured.spread, strict=True)
        ]
        print_json(rows, signed, sys.stdout)
        return
    said = pace(curve)
    console.print(f"{said[0].upper()}{said[1:]}.")
    console.print(f"memory: {_megabytes(size)} for the weights, {_megabytes(slot)} for each language of a session")
    if not verbose:
        return
    console.print()
    _print_system(tested, console)
    console.print(signed, style="dim", highlight=False, markup=False, soft_wrap=True)
    console.print()
    needed = curve.break_even(_DRAFTED)
    pays = f"saves time if at least {needed}" if needed <= _DRAFTED else "saves no time here, even if all"
    console.print(
        f"Without drafts, this model writes at most {1 / curve(1):.0f} tokens per second.\n"
        f"A draft of {_DRAFTED} tokens {pays} of them are accepted."
    )


def _print_system(tested: str, console: Console) -> None:
    """Print versions, processor and what is installed."""
    from redraft.backends.engine import kernels_mark
    from redraft.backends.engine import lib as llama_cpp
    from redraft.backends.machine import processor
    from redraft.cores import usable_cores

    gpu = "yes" if llama_cpp.llama_supports_gpu_offload() else "no"
    console.print(
        f"redraft {__version__}, Python {platform.python_version()}, llama-cpp-python {llama_cpp.__version__}"
    )
    waiting = [f"{name}={os.environ[name]}" for name in ("OMP_WAIT_POLICY", "GOMP_SPINCOUNT") if name in os.environ]
    console.print(", ".join([processor().label, f"cores {usable_cores()}", f"GPU offload {gpu}", *waiting]))
    console.print(f"kernels: {tested}")
    if "avx2" in processor().features:
        console.print(f"Redraft's kernels: {kernels_mark() or 'not in this build; see docs/install.md'}")
    console.print(f"[dim]{llama_cpp.llama_print_system_info().decode()}[/dim]")
    console.print()


def _megabytes(size: int) -> str:
    return f"{max(1, round(size / 1e6)):,} MB"
