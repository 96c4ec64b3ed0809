"""Protocols of servers that recognise speech, a module each; `redraft.speech.dialect` says what one has to offer."""
