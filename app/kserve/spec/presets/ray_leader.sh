ray start --head --port=6379 --disable-usage-stats || exit 1
count='import ray; ray.init(address="auto", logging_level="ERROR"); print(sum(n["Alive"] for n in ray.nodes()))'
until joined=$(python3 -c "${count}") && [ "${joined}" -ge "${LWS_GROUP_SIZE:-1}" ]; do
  echo "waiting for the pods of the group: ${joined:-0} of ${LWS_GROUP_SIZE:-1} have joined"
  sleep 5
done
