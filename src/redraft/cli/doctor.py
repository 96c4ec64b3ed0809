"""``redraft doctor``: what runs here, and what a pass costs."""

from __future__ import annotations

import os
import platform
import sys
from contextlib import closing

import click

from redraft import __version__
from redraft.cli import options

EXAMPLES = """\b
Examples:
  redraft doctor
  redraft doctor --model ~/models/some-model.gguf --gpu-layers 0
"""


@click.command(epilog=EXAMPLES, short_help="Check the engine and measure what a pass costs.")
@options.gguf_model
@options.threads
@options.gpu_layers
@options.exact
@options.as_json
def doctor(model: str, threads: int, gpu_layers: int, exact: bool, as_json: bool) -> None:
    """Check the engine and measure T(n): the time of one pass over n new tokens.

    On a processor with AMX the kernels are tested again, and you see how to get the fast build if this is not it.

    The curve is kept: methods that draft by what a pass costs, such as redraft, go by it.

    A draft of n tokens pays off where T(n+1) is well below n times T(1); where the curve is steep, long drafts cost.
    """
    from rich.progress import track

    from redraft import cost
    from redraft.backends import costs, kernels
    from redraft.backends.llamacpp import LlamaOptions
    from redraft.backends.load import open_model
    from redraft.eval.signature import signature
    from redraft.eval.table import print_json

    tested = kernels.report()
    engine = LlamaOptions(context_length=512, threads=threads, gpu_layers=gpu_layers, exact=exact)
    with closing(open_model(model, engine)) as backend:
        curve = cost.measure(backend, show=lambda rounds: track(rounds, "measuring", transient=True, disable=as_json))
        costs.keep(backend, curve)
        path = backend.model.path
    line = signature(path, "synthetic", "none", seed=0, threads=threads or os.cpu_count(), exact=exact)
    times = dict(zip(curve.sizes, curve.seconds, strict=True))
    if not as_json:
        _print_report(times, tested, line)
        return
    rows = [
        {"new_tokens": size, "milliseconds": round(seconds * 1e3, 3), "over_one": round(seconds / times[1], 3)}
        for size, seconds in times.items()
    ]
    print_json(rows, line, sys.stdout)


def _print_report(costs: dict[int, float], tested: str, line: str) -> None:
    import llama_cpp
    from rich.console import Console
    from rich.table import Table

    from redraft.backends.llama_model import usable_cores

    console = Console()
    gpu = "yes" if llama_cpp.llama_supports_gpu_offload() else "no"
    console.print(
        f"redraft {__version__}, Python {platform.python_version()}, llama-cpp-python {llama_cpp.__version__}"
    )
    waiting = [f"{name}={os.environ[name]}" for name in ("OMP_WAIT_POLICY", "GOMP_SPINCOUNT") if name in os.environ]
    console.print(", ".join([f"cores {usable_cores()}", f"GPU offload {gpu}", *waiting]), highlight=False)
    console.print(f"kernels: {tested}", highlight=False, soft_wrap=True)
    console.print(f"[dim]{llama_cpp.llama_print_system_info().decode()}[/dim]\n", highlight=False, soft_wrap=True)
    table = Table("n new tokens", "T(n) ms", "T(n)/T(1)", "", box=None)
    for size, seconds in costs.items():
        bar = "▇" * max(1, round(40 * seconds / max(costs.values())))
        table.add_row(str(size), f"{seconds * 1e3:.2f}", f"{seconds / costs[1]:.2f}", f"[cyan]{bar}[/cyan]")
    console.print(table)
    console.print(f"[dim]{line}[/dim]", soft_wrap=True, highlight=False)
