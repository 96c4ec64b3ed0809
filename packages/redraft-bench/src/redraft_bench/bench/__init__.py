"""Benchmarks: the tables of the papers, comparisons with other systems, and the limit; one command each."""
