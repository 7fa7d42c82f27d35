version="$(vllm --version 2>/dev/null | awk 'END { print $NF }')"
since() {
  [[ "${version}" =~ ^[0-9]+\.[0-9]+ ]] && [ "$(printf '%s\n' "$1" "${version}" | sort -V | head -n 1)" = "$1" ]
}
