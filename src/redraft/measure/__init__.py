"""What makes figures and pictures: metrics (``eval``), tables (``bench``), load on a server (``load``), ``viz``."""
