"""Between what a client is told and what goes over the wire."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from pydantic import ValidationError

from redraft.captions.events import Update
from redraft.captions.stabilise import Mask
from redraft.captions.style import Style
from redraft.client.options import ServerError
from redraft.errors import InputError, OptionError
from redraft.serve import protocol


def start_of(to: Sequence[str], mask: Mask, style: Style, **fields: Any) -> protocol.Start:
    """The message that begins a session.

    Args:
        to: target languages.
        mask: what is hidden of partial captions.
        style: how prompts are made.
        fields: more of the message.

    Raises:
        OptionError: something is out of range, or not for servers.
    """
    try:
        return protocol.Start(targets=tuple(to), **_of_mask(mask), **_of_style(style), **fields)
    except ValidationError as error:
        raise OptionError(protocol.sentence(error, protocol.Start)) from None


def _of_mask(mask: Mask) -> dict[str, Any]:
    """The fields of `start` that say what is hidden.

    Raises:
        OptionError: servers cannot hide like that.
    """
    if not mask.display_only:
        raise OptionError("mask: drafts on a server keep what is hidden, so leave display_only true")
    fields = {"mask_k": mask.k, "mask_unit": mask.unit, "mask_margin": mask.margin}
    return fields if mask.survival is None else {**fields, "mask_survival": mask.survival}


def _of_style(style: Style) -> dict[str, Any]:
    """The fields of `start` that say how prompts are made.

    Raises:
        OptionError: a template is named.
    """
    if style.template is not None:
        raise OptionError("template is chosen by the server, so leave it out")
    return {"source": style.source, "context": style.context, "glossary": style.glossary}


def heard(text: str | bytes) -> Any:
    """A message of the server.

    Raises:
        ServerError: it is none of this protocol.
    """
    try:
        return protocol.FROM_SERVER.validate_json(text)
    except ValidationError as error:
        raise ServerError(
            "protocol", f"the server speaks another protocol: {protocol.sentence(error, *protocol.SERVER)}"
        ) from None


def begun(text: str | bytes) -> protocol.Started:
    """The server's answer to `start`.

    Raises:
        ServerError: it refuses, or it is none of this protocol.
    """
    message = heard(text)
    if isinstance(message, protocol.Error):
        raise ServerError(message.code, message.message)
    if not isinstance(message, protocol.Started):
        raise ServerError("protocol", f"the server speaks another protocol: it began with {message.type!r}")
    return message


def message_of(update: Update) -> protocol.UpdateMessage:
    """The message that sends an update.

    Raises:
        InputError: it is longer than servers take.
    """
    try:
        return protocol.UpdateMessage(
            utterance=update.utterance, seq=update.seq, text=update.text, final=update.final, time=update.time
        )
    except ValidationError as error:
        raise InputError(protocol.sentence(error, protocol.UpdateMessage)) from None
