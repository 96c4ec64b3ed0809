"""Load tests: many simultaneous live talks against a server, with caption lag and the server's resource use."""
