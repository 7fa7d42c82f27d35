"""Replays recordings of the real Metacontroller and compares the results.

The recordings are in `tests/contract/recorded/traces.jsonl.xz`; `compare.py` has the rules of the comparison.
"""
