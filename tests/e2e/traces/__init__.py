"""Replays recordings of the real Metacontroller and compares.

The recordings are `tests/contract/recorded/traces.jsonl.xz`; `compare.py` here has the rules of the comparison.
"""
