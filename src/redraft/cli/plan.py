"""``redraft plan``: estimate the hardware for a number of sessions."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from redraft.cli.shared import options as common
from redraft.errors import OptionError
from redraft.measure.plan.hardware import HARDWARE
from redraft.models.shape import FORMATS, SHAPES

if TYPE_CHECKING:
    from redraft.measure.plan.costs import PassCost
    from redraft.measure.plan.model import ModelSize
    from redraft.measure.plan.supply import Supply
    from redraft.measure.plan.trace import RecordedWork

EXAMPLES = """\b
Examples:
  redraft plan --sessions 40
  redraft plan --sessions 10000 --targets 3 --model tower-2b --gpu h200
  redraft plan --sessions 1000 --viewers 1000000 --model qwen3-4b --gpu l4 --format Q8_0
  redraft plan --sessions 40 --measure --simulate
"""

FILE = click.Path(dir_okay=False, path_type=Path)
POSITIVE, SHARE = common.Real(0, min_open=True), common.Real(0, 1, min_open=True)


@click.command(
    cls=common.Grouped,
    groups={
        "Demand": ("sessions", "rate", "targets", "viewers", "deadline"),
        "Model": ("model", "format", "methods", "context_length", "trace"),
        "Hardware": ("hardware", "cores", "batch_lanes", "memory_share", "compute_share", "overhead"),
        "Measured costs": ("costs", "measure", "save_costs"),
        "Viewers": ("viewer_cost", "replica_load"),
    },
    epilog=EXAMPLES,
    short_help="Plan the hardware for many sessions.",
)
@click.option("--sessions", type=common.Whole(1, 10_000_000), required=True, help="Number of simultaneous sessions.")
@click.option("--words-per-second", "rate", type=POSITIVE, default=2.5, help="Speaking pace.")
@click.option("--targets", type=common.Whole(1, 64), default=1, help="Target languages of each session.")
@click.option("--viewers", type=common.Whole(0), default=0, help="Number of viewers, all sessions together.")
@click.option("--deadline", type=POSITIVE, default=1.0, help="Highest acceptable p95 of the lag (s).")
@click.option(
    "--model", "-m", default="demo", metavar="MODEL", help=f"{', '.join(SHAPES)}, or a model with a GGUF file."
)
@click.option("--format", type=click.Choice(list(FORMATS)), default="BF16", help="Weight format of a named shape.")
@click.option("--gpu", "--cpu", "hardware", metavar="NAME", help=f"{', '.join(HARDWARE)}.  [default: this machine]")
@click.option("--costs", type=FILE, metavar="FILE", help="Costs of a pass, as --save-costs writes them.")
@click.option("--measure", is_flag=True, help="Measure the costs of batched passes here.")
@click.option("--save-costs", type=FILE, metavar="FILE", help="Write the costs to this file.")
@click.option("--trace", type=FILE, metavar="FILE", help="Records of `redraft bench run`.  [default: the demo talk]")
@click.option(
    "--method", "methods", multiple=True, default=("ar", "ssbd", "redraft"), metavar="NAME", help="Method; repeatable."
)
@click.option("--batch-lanes", type=common.Whole(1), help="Languages in a pass.  [default: 32; on a GPU 256]")
@click.option(
    "--context-length", type=common.Whole(16), help="Cached tokens per language.  [default: 512; on a GPU 256]"
)
@click.option("--cores", type=common.Whole(1), help="Cores of a machine without GPU.  [default: as this one has]")
@click.option(
    "--memory-share",
    type=SHARE,
    default=0.6,
    help="Share of the memory bandwidth that is reached.",
)
@click.option("--compute-share", type=SHARE, default=0.4, help="Share of the FLOPS that is reached.")
@click.option("--overhead", type=common.Real(0), default=2.0, help="Further milliseconds per pass.")
@click.option("--viewer-cost", type=common.Real(0), default=60.0, help="Microseconds to send a caption to a viewer.")
@click.option("--replica-load", type=SHARE, default=0.7, help="Share of a core that a replica may use.")
@click.option("--simulate", is_flag=True, help="Check the formula by a simulation.")
@click.option("--seed", type=common.Whole(0), default=0, help="Random seed of the simulation.")
@common.as_json
@common.needs("plan", "--measure and --simulate need")
def plan(methods: tuple[str, ...], as_json: bool, simulate: bool, seed: int, **given: Any) -> None:
    """Plan how many GPUs, or cores, and how many replicas so many sessions need, by decoding method.

    A formula joins the work of a recorded talk with what a pass costs: as measured on this machine, as given in a file,
    or, for a named GPU or processor, as estimated from its data sheet. Every assumption is printed with its source.

    The exit status is 1 if no method can meet the deadline.
    """
    from rich.console import Console

    from redraft.measure.plan.capacity import Demand, Tiers, make_plan
    from redraft.measure.plan.check import check
    from redraft.measure.plan.model import model_size
    from redraft.measure.plan.report import json_lines, report, show
    from redraft.measure.plan.trace import read_trace, shipped_trace

    trace = read_trace(given["trace"]) if given["trace"] else shipped_trace()
    methods = tuple(dict.fromkeys(trace.work(method).method for method in methods))
    model = model_size(given["model"], given["format"])
    supply = _supply(model, trace, methods, given)
    demand = Demand(given["sessions"], given["rate"], given["targets"], given["viewers"], given["deadline"])
    context = given["context_length"] or (512 if supply.in_process else 256)
    tiers = Tiers(context, given["replica_load"], given["viewer_cost"] / 1e6)
    made = make_plan(demand, supply, tiers, model, trace, methods)
    checks = [check(each, demand, trace, seed) for each in made.methods if each.possible] if simulate else []
    if as_json:
        for line in json_lines(made, checks):
            click.echo(line)
    else:
        show(report(made, checks), Console())
    if not any(each.possible for each in made.methods):
        raise click.exceptions.Exit(1)


def _supply(model: ModelSize, trace: RecordedWork, methods: tuple[str, ...], given: dict[str, Any]) -> Supply:
    """Return the supply that the options describe."""
    from dataclasses import replace

    from redraft.backends.llama_model import usable_cores
    from redraft.measure.plan import supply
    from redraft.measure.plan.costs import LinearCost, Roofline, read_costs, write_costs
    from redraft.measure.plan.hardware import find_hardware

    _refuse_idle(given)
    hardware = find_hardware(given["hardware"]) if given["hardware"] else None
    cost: PassCost
    if given["costs"]:
        cost = read_costs(given["costs"])
    elif hardware:
        cost = Roofline(hardware, model, given["memory_share"], given["compute_share"], given["overhead"] / 1e3)
    else:
        cost = _costs_here(model, trace, methods, given)
    if given["save_costs"] and isinstance(cost, LinearCost):
        write_costs(given["save_costs"], cost)
    if hardware:
        found = supply.of_hardware(hardware, cost)
    else:
        found = supply.of_machine(given["cores"] or usable_cores(), supply.is_small(model), cost)
    return replace(found, batch_lanes=given["batch_lanes"] or found.batch_lanes)


def _refuse_idle(given: dict[str, Any]) -> None:
    """Raise an error for options without effect."""
    set_ = common.given()
    estimate = given["hardware"] and not given["costs"]
    here = not given["hardware"] and not given["costs"]
    for name, used, where in (
        ("memory_share", estimate, "an estimate for --gpu or --cpu"),
        ("compute_share", estimate, "an estimate for --gpu or --cpu"),
        ("overhead", estimate, "an estimate for --gpu or --cpu"),
        ("measure", here, "this machine, without --gpu, --cpu and --costs"),
        ("save_costs", here, "this machine, without --gpu, --cpu and --costs"),
        ("cores", not given["hardware"], "machines without GPU, without --gpu and --cpu"),
        ("format", given["model"] in SHAPES, f"the shapes {', '.join(SHAPES)}"),
        ("viewer_cost", given["viewers"], "--viewers"),
    ):
        if name in set_ and not used:
            raise OptionError(f"--{name.replace('_', '-')} is for {where}, so leave it out")


def _costs_here(model: ModelSize, trace: RecordedWork, methods: tuple[str, ...], given: dict[str, Any]) -> PassCost:
    from redraft.measure.plan import supply

    if model.name in SHAPES:
        raise OptionError(
            f"model {model.name!r} is a shape without weights, which cannot be measured here: name hardware with "
            "--gpu or --cpu, give --costs, or give the path of a GGUF file"
        )
    if not given["measure"]:
        return supply.stored(model)
    return supply.measured(model, methods, trace, given["rate"], "de", lambda text: click.echo(text, err=True))
