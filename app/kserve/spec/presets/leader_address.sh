address="${LWS_LEADER_ADDRESS}"
for attempt in $(seq "${DP_ADDRESS_RESOLVE_ATTEMPTS:-30}"); do
  resolved="$(getent hosts "${LWS_LEADER_ADDRESS}" | awk 'NR == 1 { print $1 }')"
  if [ -n "${resolved}" ]; then
    address="${resolved}"
    break
  fi
  echo "attempt ${attempt}: ${LWS_LEADER_ADDRESS} has no address yet"
  sleep 1
done
