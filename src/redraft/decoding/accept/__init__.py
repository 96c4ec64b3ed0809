"""Acceptance rules, one a file: each decides which path of a scored draft is kept."""
