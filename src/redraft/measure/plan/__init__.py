"""Plan the hardware for a number of sessions: recorded work, costs of passes, and a formula checked by a simulation.

``trace`` is the recorded work of live speech, ``costs`` and ``hardware`` give the cost of a pass, ``model`` the sizes
of a model.  ``formula`` combines them for one engine, ``capacity`` for a whole service.  ``simulate`` runs the real
scheduler on recorded work, and ``rehearse`` runs it on a real model, both in simulated time.
"""
