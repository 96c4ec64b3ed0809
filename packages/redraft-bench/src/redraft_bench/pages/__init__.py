"""Makes docs/benchmarks from benchmarks/results (`build`, in a clone of the repository), and the report of a folder."""
