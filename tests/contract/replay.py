"""``compare.py`` from beside the recordings, with one plural put right.

It forms ``gatewaies`` from ``Gateway``, so a customize answer that asks for ``gateways`` would never be given one, and
no route of a recorded case had a URL. Everything else, arguments included, is its own.
"""

from __future__ import annotations

import importlib.util

from tests.shared import GOLDEN

specification = importlib.util.spec_from_file_location("compare", GOLDEN / "compare.py")
assert specification is not None
assert specification.loader is not None
compare = importlib.util.module_from_spec(specification)
specification.loader.exec_module(compare)
compare.PLURALS["Gateway"] = "gateways"

if __name__ == "__main__":
    compare.main()
