"""A stand-in for Metacontroller v4.17.2 where its binary is not at hand.

It runs CompositeControllers (v2 hooks, dynamic apply, no rolling updates), and DecoratorControllers that only write
labels, against a real API server, in the order that
section 10.3 of the Metacontroller specification lays down; `tests/e2e/test_traces.py` holds it to recordings of the
real one. Run it with `python -m tests.e2e.standin --kubeconfig PATH`.
"""
