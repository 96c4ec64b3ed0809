"""Speech recognition: audio from a microphone, a file or a pipe, recognisers, and their growing hypotheses.

`redraft.speech.audio` yields blocks of samples, `redraft.speech.recogniser` turns them into updates of a transcript.
Each recogniser is a module registered under the entry points `redraft.recognisers`.  Recognition servers are reached
over websockets; each protocol is a module registered under `redraft.recogniser_servers`.
"""
