until (exec 3<>"/dev/tcp/${LWS_LEADER_ADDRESS}/6379") 2>/dev/null; do
  echo "waiting for the leader, ${LWS_LEADER_ADDRESS}"
  sleep 5
done
exec ray start --address="${LWS_LEADER_ADDRESS}:6379" --disable-usage-stats --block
