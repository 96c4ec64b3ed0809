"""Many live talks at once against a server, through its client: how far captions lag, and what the server uses."""
