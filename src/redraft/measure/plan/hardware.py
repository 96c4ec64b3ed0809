"""Hardware by name, from data sheets; nothing here was measured."""

from __future__ import annotations

from dataclasses import dataclass

from redraft.errors import OptionError


@dataclass(frozen=True, slots=True)
class Hardware:
    """A GPU, or a processor with its memory.

    Attributes:
        name: its name on the command line.
        gpu: whether it is a GPU.
        bandwidth: memory bandwidth in bytes per second.
        flops: dense 16-bit floating-point operations per second.
        memory: memory in bytes; 0 if it is not fixed.
        sheet: the data sheet.
    """

    name: str
    gpu: bool
    bandwidth: float
    flops: float
    memory: float
    sheet: str


def _gpu(name: str, terabytes: float, teraflops: float, gigabytes: float, sheet: str) -> Hardware:
    return Hardware(name, True, terabytes * 1e12, teraflops * 1e12, gigabytes * 1e9, sheet)


def _cpu(name: str, gigabytes: float, teraflops: float, sheet: str) -> Hardware:
    return Hardware(name, False, gigabytes * 1e9, teraflops * 1e12, 0.0, sheet)


#: FLOPS are for dense 16-bit matrices with 32-bit sums; for processors, cores x base clock x operations per cycle.
_ROWS = (
    _gpu("t4", 0.32, 65, 16, "NVIDIA T4"),
    _gpu("l4", 0.30, 121, 24, "NVIDIA L4"),
    _gpu("l40s", 0.864, 362, 48, "NVIDIA L40S"),
    _gpu("rtx-4090", 1.008, 165, 24, "NVIDIA Ada architecture, RTX 4090"),
    _gpu("a10", 0.60, 125, 24, "NVIDIA A10"),
    _gpu("a100", 2.039, 312, 80, "NVIDIA A100 80GB SXM"),
    _gpu("h100", 3.35, 989, 80, "NVIDIA H100 SXM"),
    _gpu("h200", 4.8, 989, 141, "NVIDIA H200 SXM"),
    _gpu("b200", 8.0, 2250, 180, "NVIDIA B200, HGX"),
    _gpu("mi300x", 5.3, 1307, 192, "AMD Instinct MI300X"),
    # 96 cores, 2.4 GHz, one instruction of 32 multiply-adds per cycle.
    _cpu("epyc-9654", 460.8, 14.7, "AMD EPYC 9654: 12 channels of DDR5-4800, AVX-512 BF16"),
    # 56 cores, 2.0 GHz, 1024 multiply-adds per cycle.
    _cpu("xeon-8480", 307.2, 229, "Intel Xeon Platinum 8480+: 8 channels of DDR5-4800, AMX BF16"),
)
HARDWARE = {each.name: each for each in _ROWS}


def find_hardware(name: str) -> Hardware:
    """Return the hardware with a name.

    Raises:
        OptionError: no hardware has this name; the message lists the names.
    """
    if name not in HARDWARE:
        raise OptionError(f"hardware must be one of {', '.join(HARDWARE)}, not {name!r}")
    return HARDWARE[name]
