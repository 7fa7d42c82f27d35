rank="${LWS_WORKER_INDEX:-0}"
[[ "${rank}" =~ ^[0-9]{1,9}$ ]] || stop "LWS_WORKER_INDEX is not a number"
rank=$((10#${rank}))
