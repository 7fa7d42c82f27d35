eval "server+=(${VLLM_ADDITIONAL_ARGS})"
for argument in "$@"; do
  case "${argument}" in
    [{[]* | --*=[{[]*) server+=("${argument}") ;;
    *) eval "server+=(${argument})" ;;
  esac
done
exec "${server[@]}"
