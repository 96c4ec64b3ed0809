"""What viewers and readers may see of a session: the only place that knows what is paused, hidden and held back."""

from __future__ import annotations

from typing import TypeAlias

from redraft.captions.events import Caption

#: Utterance and target language of a caption.
Key: TypeAlias = tuple[str, str]


def key_of(caption: Caption) -> Key:
    """Return what identifies a caption."""
    return caption.utterance, caption.language


class Visibility:
    """Which captions are visible, as the owner of the session decides.

    Attributes:
        paused: whether captions are held back from viewers.
        hidden: captions that are hidden, including ones that have not arrived yet.
    """

    def __init__(self) -> None:
        self.paused = False
        self.hidden: set[Key] = set()
        #: Final captions that arrived while captions were paused, in order.
        self._held: dict[Key, None] = {}

    def holds(self, key: Key) -> bool:
        """Whether a final caption is held back until captions are released."""
        return key in self._held

    def shows(self, key: Key) -> bool:
        """Whether readers of the transcript may see a final caption."""
        return key not in self.hidden and key not in self._held

    def sends(self, key: Key) -> bool:
        """Whether viewers are sent a caption that arrives now."""
        return not self.paused and self.shows(key)

    def arrived(self, key: Key) -> None:
        """Record that a final caption has arrived; while captions are paused, it is held back."""
        if self.paused:
            self._held[key] = None

    def hide(self, key: Key, hidden: bool) -> None:
        """Hide a caption, or show it again."""
        (self.hidden.add if hidden else self.hidden.discard)(key)

    def pause(self) -> None:
        """Hold back the captions that arrive from now on."""
        self.paused = True

    def release(self) -> list[Key]:
        """Show the final captions that were held back, and return their keys."""
        released, self._held, self.paused = list(self._held), {}, False
        return released
