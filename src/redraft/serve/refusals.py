"""What is said to a client that is not let in."""

from __future__ import annotations


class Refused(Exception):
    """A request that is not granted; ``code`` is one of `redraft.serve.protocol.CODES`."""

    def __init__(self, code: str, sentence: str) -> None:
        super().__init__(sentence)
        self.code, self.sentence = code, sentence
