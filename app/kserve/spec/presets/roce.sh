if [ "${KSERVE_INFER_ROCE}" = "true" ]; then
  say() { echo "[roce] $*"; }
  wanted="${KSERVE_INFER_IB_GID_INDEX_GREP:-RoCE v2}"
  sysfs=/sys/class/infiniband

  adapters=()
  for device in "${sysfs}"/mlx5_*; do
    port="${device}/ports/1"
    grep -qs ACTIVE "${port}/state" || continue
    grep -qs -- "${wanted}" "${port}"/gid_attrs/types/* || continue
    adapters+=("${device##*/}")
  done

  if [ "${#adapters[@]}" -eq 0 ]; then
    say "no active adapter with ${wanted}; NCCL_IB_HCA is left alone"
  else
    joined="$(IFS=,; echo "${adapters[*]}")"
    ports="$(printf '%s:1,' "${adapters[@]}")"
    export NCCL_IB_HCA="${NCCL_IB_HCA:-${joined}}"
    export NVSHMEM_HCA_LIST="${NVSHMEM_HCA_LIST:-${joined}}"
    export UCX_NET_DEVICES="${UCX_NET_DEVICES:-${ports%,}}"
    say "adapters ${joined}"

    declare -A votes=()
    for adapter in "${adapters[@]}"; do
      for type in "${sysfs}/${adapter}"/ports/1/gid_attrs/types/*; do
        grep -qs -- "${wanted}" "${type}" || continue
        index="${type##*/}"
        grep -qs 'ffff:' "${sysfs}/${adapter}/ports/1/gids/${index}" || continue
        votes["${index}"]=$(( ${votes["${index}"]:-0} + 1 ))
        break
      done
    done

    best=""
    most=0
    for index in "${!votes[@]}"; do
      if [ "${votes["${index}"]}" -gt "${most}" ]; then
        most="${votes["${index}"]}"
        best="${index}"
      fi
    done
    if [ "${#votes[@]}" -gt 1 ] && [ "${votes["3"]:-0}" -eq "${most}" ]; then
      best=3
    fi

    gid="${NCCL_IB_GID_INDEX:-${best}}"
    if [ -z "${gid}" ]; then
      say "no adapter has an IPv4 address for ${wanted}; the GID index is left alone"
    else
      export NCCL_IB_GID_INDEX="${gid}"
      export NVSHMEM_IB_GID_INDEX="${NVSHMEM_IB_GID_INDEX:-${gid}}"
      export UCX_IB_GID_INDEX="${UCX_IB_GID_INDEX:-${gid}}"
      say "GID index ${gid}"
    fi
  fi
fi
