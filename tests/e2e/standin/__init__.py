"""A stand-in for Metacontroller v4.17.2, for use without its binary.

It runs CompositeControllers (v2 hooks, dynamic apply, no rolling updates) and DecoratorControllers that only write
labels and annotations, against a real API server, in the order of section 10.3 of the Metacontroller specification.
`tests/e2e/test_traces.py` compares it with recordings of the real one. Run it with `python -m tests.e2e.standin
--kubeconfig PATH`.
"""
