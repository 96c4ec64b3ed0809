"""Exact acceptance, which several papers share; a rule decides which path of a scored draft is accepted."""
