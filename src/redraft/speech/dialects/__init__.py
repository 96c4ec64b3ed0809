"""Protocols of recognition servers, a module each; `redraft.speech.dialect` describes their interface."""
