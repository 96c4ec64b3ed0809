"""From transcript to caption: events, prompts, languages, sessions, what is shown of them, formats in and out."""
