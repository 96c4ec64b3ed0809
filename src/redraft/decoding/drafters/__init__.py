"""Drafters that several papers share; a drafter proposes the draft that a pass of the target model scores."""
