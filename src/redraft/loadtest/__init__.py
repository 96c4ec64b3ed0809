"""Many live talks at once against a server, through `redraft.client`: how far captions lag, and what the server uses."""
