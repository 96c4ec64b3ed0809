"""Evaluation: streams, records, metrics, tables.

Throughout, ``records`` are those of one contender in the order of the ``stream``; an `InputError` is raised for records
of another stream.  ``language`` is the tag of the captions' language, and an `OptionError` is raised if it is unknown.
`redraft_bench.eval.long_yaal` needs an extra.
"""
