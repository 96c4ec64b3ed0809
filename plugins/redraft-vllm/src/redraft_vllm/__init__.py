"""Per-request drafts with a bias (SSBD) for vLLM: the plug-in's entry point and the supported version.

The plug-in uses internals of vLLM, which change without notice.  So it supports one version only and does nothing on
any other; a server that is configured to use it then refuses to start, with one sentence.
"""

from __future__ import annotations

import logging

#: The only version of vLLM that this version of the plug-in supports.
VLLM = "0.32.0"

log = logging.getLogger("vllm.redraft")  # a child of vLLM's logger, so that its handlers apply

_installed = False


def problem(version: str) -> str:
    """Return why the plug-in does not support a version of vLLM, in one sentence; empty if it does."""
    if version.partition("+")[0] == VLLM:  # a suffix such as +cpu names the build
        return ""
    return f"redraft-vllm works with vLLM {VLLM}, not {version}: install vllm=={VLLM}, or another redraft-vllm"


def register() -> None:
    """Prepare vLLM in this process; vLLM calls it in every process, possibly more than once."""
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
