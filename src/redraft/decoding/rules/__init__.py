"""Acceptance rules; a rule decides which path of a scored draft is accepted."""
