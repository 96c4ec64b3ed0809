"""The limit on open files, and so on connections, of this process."""

from __future__ import annotations

try:
    import resource
except ModuleNotFoundError:  # Windows has no such limit
    resource = None  # type: ignore[assignment]

from redraft.errors import OptionError


def allow_open_files(number: int | None = None) -> None:
    """Raise the soft limit on open files as far as possible.

    Args:
        number: number of files needed; None only raises the limit.

    Raises:
        OptionError: the system allows fewer.
    """
    if resource is None:
        return
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    endless = resource.RLIM_INFINITY
    if soft != endless and (hard == endless or soft < hard):
        soft = max(soft, number or 0) if hard == endless else hard
        resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))
    if number is not None and soft != endless and soft < number:
        raise OptionError(
            f"{number} files must be open at a time, one for each connection, and the system allows {soft}: raise the "
            "limit with `ulimit -n`, or LimitNOFILE under systemd"
        )
