"""Acceptance rules, one per file; a rule decides which path of a scored draft is accepted."""
