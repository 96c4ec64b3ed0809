"""Drafters, one a file: each proposes the draft that the target model then scores in one pass."""
