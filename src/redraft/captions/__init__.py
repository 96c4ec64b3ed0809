"""From transcripts to captions: events, prompts, languages, sessions, masks, reading mode, input and output formats."""
