#!/usr/bin/env bash
# vLLM 0.23.0 and 0.24.0, without their dependencies (their modules for logs, addresses and hashes are stood in for).
#
# Events about the key-value cache are lists of values in the one release and maps with names in the other, while the
# batch around them is a list in both, and neither has a version. A reader of lists, such as the scorer for precise
# prefix caches of llm-d's endpoint picker 0.9, drops every batch of the newer one, and requests are answered all the
# same. Source: the publisher's own classes, vllm/distributed/kv_events.py.
# Seen: "0.23.0 list list" and "0.24.0 list dict".
set -euo pipefail
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
python3 -m venv "$work/venv"
"$work/venv/bin/pip" --quiet --disable-pip-version-check install msgspec==0.21.1 pyzmq==27.1.0
cat >"$work/encode.py" <<'PYTHON'
import importlib.util
import logging
import sys
import types

import msgspec


def stand_in(name, **content):
    sys.modules[name] = types.ModuleType(name)
    vars(sys.modules[name]).update(content)


for package in ("vllm", "vllm.config", "vllm.utils", "vllm.v1", "vllm.v1.core"):
    stand_in(package)
nothing = type("Nothing", (), {})
stand_in("vllm.config.kv_events", KVEventsConfig=nothing)
stand_in("vllm.logger", init_logger=logging.getLogger)
names = ("get_ip", "get_tcp_uri", "is_valid_ipv6_address", "split_zmq_path")
stand_in("vllm.utils.network_utils", **dict.fromkeys(names))
stand_in("vllm.v1.core.kv_cache_utils", ExternalBlockHash=bytes | int)
spec = importlib.util.spec_from_file_location("kv_events", sys.argv[1])
module = importlib.util.module_from_spec(spec)
sys.modules["kv_events"] = module
spec.loader.exec_module(module)
fields = {"parent_block_hash": None, "lora_id": None, "medium": "GPU", "lora_name": None}
event = module.BlockStored(block_hashes=[1], token_ids=[5] * 16, block_size=16, **fields)
batch = msgspec.msgpack.decode(msgspec.msgpack.encode(module.KVEventBatch(ts=0.0, events=[event])))
print(type(batch).__name__, type(batch[1][0]).__name__)
PYTHON
seen=""
for release in 0.23.0 0.24.0; do
  "$work/venv/bin/pip" --quiet --disable-pip-version-check download --no-deps --python-version 3.11 \
    --only-binary :all: --dest "$work/$release" "vllm==$release"
  python3 -m zipfile --extract "$work/$release"/*.whl "$work/$release"
  seen="$seen$release $("$work/venv/bin/python" "$work/encode.py" "$work/$release/vllm/distributed/kv_events.py"); "
  rm -rf "${work:?}/$release"
done
echo "$seen"
[ "$seen" = "0.23.0 list list; 0.24.0 list dict; " ]
