"""Drafters, one per file; a drafter proposes the draft that the target model scores in one pass."""
