#!/bin/sh
# kserve-storage 0.21.0 asks for an extra of huggingface-hub that 2.4.0 does not have, and the variable for it does nothing.
#
# Seen: pip installs both with a warning only; HF_HUB_ENABLE_HF_TRANSFER=1, which KServe's controller writes into every
# storage initializer, ends in a FutureWarning at each start. Xet and its own variables are what speeds downloads up.
# Source: METADATA of both packages on PyPI, and huggingface_hub/constants.py.
# Exits 0 while this is so, 1 once it has changed.
set -eu
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
python3 -m venv "$work/venv"
"$work/venv/bin/pip" install --quiet huggingface-hub==2.4.0
"$work/venv/bin/pip" install --quiet --no-deps kserve-storage==0.21.0
HF_HUB_ENABLE_HF_TRANSFER=1 HF_HOME="$work" "$work/venv/bin/python" - <<'PYTHON'
import sys
import warnings
from importlib.metadata import metadata, requires

with warnings.catch_warnings(record=True) as caught:
    warnings.simplefilter("always")
    from huggingface_hub import constants

asked = [item for item in requires("kserve-storage") if item.startswith("huggingface-hub")]
extras = metadata("huggingface-hub").get_all("Provides-Extra")
said = [str(one.message) for one in caught if "HF_HUB_ENABLE_HF_TRANSFER" in str(one.message)]
read = [name for name in dir(constants) if "HF_TRANSFER" in name]
print("kserve-storage 0.21.0 requires:", *asked)
print("huggingface-hub 2.4.0 has the extras:", *sorted(extras))
print("huggingface_hub says:", *said)
as_found = "hf-transfer" in asked[0] and "hf-transfer" not in extras and said and not read
sys.exit(0 if as_found else 1)
PYTHON
