"""Scheduling of translations on models, and admission to them."""
