"""Measurement: metrics (``eval``), benchmark tables (``bench``), load tests (``loadtest``) and pictures (``viz``)."""
