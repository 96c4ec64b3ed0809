"""Many streams on one model: lanes, their scheduler, and the thread that runs the passes.  No network here."""
