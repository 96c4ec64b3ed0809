"""Run a command of zig's compiler, with the names that zig has for 64-bit Arm processors.

    python tools/zig.py zig cc -march=armv8.2-a+dotprod+fp16 ...

llama.cpp asks for a kind of processor as GCC and Clang name them; zig knows them as a processor with features.  CMake
starts this in front of every compilation (`tools.build_llama`).  Standard library only.
"""

from __future__ import annotations

import os
import re
import sys

_ARM = re.compile(r"-march=armv(\d)(?:\.(\d))?-a((?:\+\w+)*)")
#: Features whose names in LLVM, and so in zig, are others.
_FEATURES = {"fp16": "fullfp16"}


def translate(argument: str) -> str:
    """Return an argument as zig reads it, such as ``-mcpu=generic+v8_2a+dotprod``; others than ``-march`` stay."""
    found = _ARM.fullmatch(argument)
    if not found:
        return argument
    version = "_".join(part for part in found.group(1, 2) if part)
    features = [_FEATURES.get(name, name) for name in found[3].split("+")[1:]]
    return "+".join(["-mcpu=generic", f"v{version}a", *features])


if __name__ == "__main__":
    command = [translate(argument) for argument in sys.argv[1:]]
    os.execvp(command[0], command)
