"""Addresses of servers, and the proxies of the environment (``http_proxy``, ...): who uses one, what to say of it."""

from __future__ import annotations

import ipaddress
from contextlib import suppress
from urllib.parse import SplitResult, urlsplit, urlunsplit
from urllib.request import getproxies, proxy_bypass

#: Scheme of an address -> kinds of proxies that serve it, the first one that is set.
_KINDS = {"ws": ("ws", "socks", "https", "http"), "wss": ("wss", "socks", "https")}


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
    with suppress(ValueError):
        address = ipaddress.ip_address(host)
        return address.is_loopback or address.is_unspecified
    return host == "localhost" or host.endswith(".localhost")


def proxy_for(url: str) -> str | None:
    """Return the environment's proxy for an address, without its password; None if it is reached directly."""
    parts = urlsplit(url)
    if is_local(url) or proxy_bypass(parts.netloc.rpartition("@")[2]):
        return None
    found = getproxies()
    kinds = _KINDS.get(parts.scheme, (parts.scheme, "all"))
    proxy = next((found[kind] for kind in kinds if kind in found), None)
    if proxy is None:
        return None
    named = urlsplit(proxy if "//" in proxy else f"http://{proxy}")
    return urlunsplit(named._replace(netloc=named.netloc.rpartition("@")[2]))


def through(url: str) -> str:
    """Return " through the proxy ..." for messages about an address; empty if it is reached directly."""
    proxy = proxy_for(url)
    return f" through the proxy {proxy} of the environment" if proxy else ""


def needs_package(url: str, package: str) -> str:
    """Return a sentence on a proxy that needs a package which is not installed."""
    return (
        f"the proxy {proxy_for(url)} of the environment needs the package {package.partition('[')[0]}: "
        f"pip install '{package}', or unset the variable"
    )
