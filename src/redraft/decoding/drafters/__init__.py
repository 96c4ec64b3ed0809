"""Drafters, one per file, and what they share; a drafter proposes the draft that a pass of the target model scores."""
