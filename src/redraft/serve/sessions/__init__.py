"""Live sessions: their rooms, captions, viewers and audio."""
