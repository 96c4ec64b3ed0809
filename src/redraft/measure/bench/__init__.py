"""Benches: the tables of the papers, the peers, the limit; one command each."""
