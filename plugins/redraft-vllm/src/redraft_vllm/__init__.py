"""Per-request drafts with a bias (SSBD) for vLLM: the plug-in's entry point, and the version that it works with.

The engine's parts that the plug-in touches are internal to vLLM and change without notice. So it works with one version
only and leaves every other one as it is; a server that is told to use it then refuses to start, with one sentence.
"""

from __future__ import annotations

import logging

#: The only version of vLLM that this version of the plug-in works with.
VLLM = "0.32.0"

log = logging.getLogger("vllm.redraft")  # below vLLM's own logger, so that its handlers apply

_installed = False


def problem(version: str) -> str:
    """Why the plug-in does not work with a version of vLLM, in one sentence; empty if it does."""
    if version.partition("+")[0] == VLLM:  # a suffix names the build, such as +cpu
        return ""
    return f"redraft-vllm works with vLLM {VLLM}, not {version}: install vllm=={VLLM}, or another redraft-vllm"


def register() -> None:
    """Prepare vLLM in this process; vLLM calls it in every process, perhaps more than once."""
    global _installed
    import vllm

    if _installed:
        return
    if refusal := problem(vllm.__version__):
        log.warning("%s; drafts are not available", refusal)
        return
    from redraft_vllm.hooks import install

    install()
    _installed = True


def is_installed() -> bool:
    """Whether `register` has prepared vLLM in this process."""
    return _installed
