"""How many files, and with them connections, this process may have open."""

from __future__ import annotations

try:
    import resource
except ModuleNotFoundError:  # Windows, which has no such limit
    resource = None  # type: ignore[assignment]

from redraft.errors import OptionError


def allow_open_files(number: int | None = None) -> None:
    """Raise the limit of open files as far as the system lets any process raise it itself.

    Args:
        number: how many are needed; None takes what there is.

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
