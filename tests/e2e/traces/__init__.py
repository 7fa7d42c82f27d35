"""Replays recordings of the real Metacontroller and compares.

The recordings and the rules of the comparison lie beside this repository, in `shared/metacontroller-traces`.
"""
