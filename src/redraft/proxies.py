"""Addresses of servers, and what to say of the proxies of the environment (``http_proxy``, ...)."""

from __future__ import annotations

import ipaddress
from urllib.parse import SplitResult, urlsplit
from urllib.request import getproxies, proxy_bypass


def address_parts(url: str, *schemes: str) -> SplitResult | None:
    """Return the parts of an address with one of these schemes and a host; None if it has another form."""
    try:
        parts = urlsplit(url)
        return parts if parts.scheme in schemes and parts.hostname and parts.port != 0 else None
    except ValueError:
        return None


def is_local(url: str) -> bool:
    """Whether an address is on this machine, which no proxy can reach."""
    host = urlsplit(url).hostname or ""
    if host == "localhost" or host.endswith(".localhost"):
        return True
    try:
        address = ipaddress.ip_address(host)
    except ValueError:
        return False
    return address.is_loopback or address.is_unspecified


def through(url: str) -> str:
    """Return " through the proxy ..." for messages about an address; empty if it is reached directly."""
    direct = is_local(url) or proxy_bypass(urlsplit(url).netloc.rpartition("@")[2]) or not getproxies()
    return "" if direct else " through the proxy of the environment"


def needs_package(package: str) -> str:
    """Return a sentence on a proxy that needs a package which is not installed."""
    return (
        f"the proxy of the environment needs the package {package.partition('[')[0]}: pip install '{package}', or "
        "unset the variable"
    )
