stop() {
  echo "$*" >&2
  exit 64
}
filled() {
  local rest="$1" name
  word=""
  while [[ "${rest}" == *'$('* ]]; do
    word+="${rest%%'$('*}"
    rest="${rest#*'$('}"
    name="${rest%%)*}"
    if [[ "${name}" =~ ^[A-Za-z_][A-Za-z0-9_]*$ && "$(declare -p -- "${name}" 2>&1)" == 'declare -x '* ]]; then
      word+="${!name}"
      rest="${rest#*)}"
    else
      word+='$('
    fi
  done
  word+="${rest}"
}
next() {
  [[ "${rest}" =~ $1 ]] || return 1
  part="${BASH_REMATCH[0]}"
  rest="${rest:${#part}}"
}
words() {
  local LC_ALL=C rest="$2" part="" word text quoted="" depth=0
  local blanks=$'^([ \t\r\n]|\\\\\r?\n)+' joined=$'^\\\\\n' plain=$'^[^][{}\'"\\ \t\r\n]+' json='^[^][{}"\\]+' starts='^(-[^=]*=)?$'
  local single="^'[^']*'" double='^[^"\\]+' string='^"([^"\\]|\\.)*"' escaped='^\\.' kept='^\\[^"\\$`]'
  next "${blanks}"
  while [ -n "${rest}" ]; do
    text="" quoted="" depth=0
    while [ -n "${rest}" ]; do
      if [ -n "${quoted}" ]; then
        if next '^"'; then
          quoted=""
        elif next "${joined}"; then
          continue
        elif next "${double}" || next "${kept}"; then
          text+="${part}"
        elif next "${escaped}"; then
          text+="${part:1}"
        else
          break
        fi
      elif [ "${depth}" -gt 0 ] && { next "${string}" || next "${json}"; }; then
        text+="${part}"
      elif [ "${depth}" -eq 0 ] && next "${blanks}"; then
        break
      elif next "${escaped}"; then
        text+="${part:1}"
      elif [ "${depth}" -gt 0 ] || [[ "${text}" =~ ${starts} && "${rest}" == [[{]* ]]; then
        next '^[][{}]' || break
        [[ "${part}" == [[{] ]] && depth=$((depth + 1)) || depth=$((depth - 1))
        text+="${part}"
      elif next '^"'; then
        quoted=yes
      elif next "${single}"; then
        text+="${part:1:-1}"
      elif next "${plain}" || next '^[][{}]'; then
        text+="${part}"
      else
        break 2
      fi
    done
    [ -z "${quoted}" ] && [ "${depth}" -eq 0 ] || break
    filled "${text}"
    server+=("${word}")
  done
  [ -z "${rest}${quoted}" ] && [ "${depth}" -eq 0 ] || stop "cannot read $1: a quote, a bracket or a backslash has no end"
}
