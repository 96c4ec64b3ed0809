"""Speech in: audio of a microphone, a file or a pipe, recognisers, and the growing hypotheses that they hear.

`redraft.speech.audio` yields blocks of samples, `redraft.speech.recogniser` turns them into updates of a transcript.
Each recogniser is a module of its own that is found through the entry points `redraft.recognisers`; recognisers that
run elsewhere are reached over websockets, each protocol a module found through `redraft.recogniser_servers`.
"""
