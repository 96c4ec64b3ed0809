"""The plots of a report: which there are, and how each is drawn."""
