"""Engines that run models.  `redraft.backends.load` turns a name into one of them."""
