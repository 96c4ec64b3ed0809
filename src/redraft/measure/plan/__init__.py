"""How much hardware so many sessions need: recorded work, what a pass costs, and a formula that a simulation checks.

``trace`` is the work of live speech as it was recorded, ``costs`` and ``hardware`` say what a pass takes, ``model``
what a model is made of.  ``formula`` joins them for one engine, ``capacity`` for a whole service.  ``simulate`` runs
the real scheduler on recorded work, and ``rehearse`` runs it on a real model, both in simulated time.
"""
