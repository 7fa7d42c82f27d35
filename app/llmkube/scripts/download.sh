# Puts one model file at MODEL_PATH, whole and verified, or not at all. POSIX sh, curl, sha256sum, awk.
#
# All input is environment: MODEL_SOURCE, CACHE_DIR, MODEL_PATH, and where they apply MODEL_SHA256, REFRESH_POLICY,
# HOST_FILE (a file of the node, mounted) and CA_DIR (certificates to trust besides the system's). In the Job alone
# KEEP_KEYS: the directories of other sources that stay; where it is not set, all stay.
# Exit codes: 0 the file is there, 1 try again, 64 trying again is useless, 65 wrong SHA-256.
#
# Lines between "#job {" and "#job }" are for the Job alone, those of "#credentials" for sources that need some (there
# MODEL_SOURCE may be s3://bucket/key). The rest is in the pod template of every service that downloads: a change there
# restarts their pods.
set -u

final=$MODEL_PATH
dir=${final%/*}
base=${final##*/}
tmp=$final.tmp
sum_file=$dir/.$base.sha256
tag_file=$dir/.$base.etag
want=$(printf '%s' "${MODEL_SHA256:-}" | tr A-F a-f)
pause=${RETRY_SECONDS:-2}
url=$(printf '%s' "$MODEL_SOURCE" | sed 's/ /%20/g')

say() { printf 'model-downloader: %s\n' "$*" >&2; }
digest() { sha256sum <"$1" | cut -d' ' -f1; }
size_of() { if [ -f "$1" ]; then wc -c <"$1" | tr -d ' '; else echo 0; fi; }

# The value of a header of the last response in a dump of headers; redirects come before it.
header() {
  [ -f "$2" ] || return 0
  tr -d '\r' <"$2" | awk -v name="$1:" '
    /^HTTP\// { value = "" }
    tolower($1) == name { sub(/^[^:]*:[ \t]*/, ""); value = $0 }
    END { print value }'
}

# What If-Range can take: a strong ETag, else the date.
validator() {
  grep -q '^HTTP/[0-9.]* 20[06]' "$1" 2>/dev/null || return 0
  tag=$(header etag "$1")
  case $tag in '"'*) printf '%s' "$tag" ;; *) header last-modified "$1" ;; esac
}

# Certificates of the operator are trusted besides the system's, never instead of them.
trust() {
  [ -n "${CA_DIR:-}" ] || return 0
  bundle=$(mktemp) || return 1
  for system in "${CURL_CA_BUNDLE:-}" /etc/ssl/certs/ca-certificates.crt /etc/pki/tls/certs/ca-bundle.crt \
    /etc/ssl/cert.pem /cacert.pem; do
    if [ -n "$system" ] && [ -f "$system" ]; then
      cat -- "$system" >>"$bundle"
      break
    fi
  done
  for certificate in "$CA_DIR"/*; do
    [ -f "$certificate" ] && { echo; cat -- "$certificate"; } >>"$bundle"
  done
  CURL_CA_BUNDLE=$bundle
  export CURL_CA_BUNDLE
}

request() {
  curl -q -fsSL --globoff --proto '=http,https' --proto-redir '=http,https' --max-redirs 10 --connect-timeout 30 "$@" \
    -- "$url"
}

#job {
limit=
connected=
earlier=
facts=
again=
free() { df -Pk -- "$dir" 2>/dev/null | awk 'NR == 2 && $4 ~ /^[0-9]+$/ { printf "%.0f", $4 * 1024 }'; }
full() {
  room=$(free)
  [ -n "$room" ] && [ "$room" -lt "$1" ]
}
say_full() {
  say "the volume is full: $1 of ${2:-an unknown number of} bytes are there, and $(free) more have room; give it" \
    'more room, or the model another volume'
}
request() {
  # A bucket's request is signed with all of its headers, and this one is changed on the way to some.
  [ -n "${curlrc:-}" ] || set -- -H 'Accept-Encoding: identity' "$@"
  curl -q -fsSL --globoff --proto '=http,https' --proto-redir '=http,https' --max-redirs 10 --connect-timeout 10 \
    ${limit:+--max-filesize "$limit"} "$@" -- "$url"
}

# What names the version of a file in a dump of headers, a line each: its ETag, its date, and its length.
version() {
  grep -q '^HTTP/[0-9.]* 20[06]' "$1" 2>/dev/null || return 0
  range=$(header content-range "$1")
  total=${range##*/}
  [ -n "$range" ] || total=$(header content-length "$1")
  printf '%s\n%s\n%s\n' "$(header etag "$1")" "$(header last-modified "$1")" "$total"
}

# Whether two versions differ in something that both have.
is_other() {
  for line in 1 2 3; do
    before_=$(printf '%s\n' "$1" | sed -n "${line}p")
    now_=$(printf '%s\n' "$2" | sed -n "${line}p")
    [ -z "$before_" ] || [ -z "$now_" ] || [ "$before_" = "$now_" ] || return 0
  done
  return 1
}

# Waits as long as a server asks for, at most a quarter of an hour, if it does.
waits() {
  case $code in 429 | 503) ;; *) return 1 ;; esac
  asked=$(header retry-after "$tmp.head")
  case $asked in '' | *[!0-9]*) return 1 ;; ????*) asked=900 ;; esac
  [ "$asked" -le 900 ] || asked=900
  say "the server asks to wait (HTTP $code); trying again in $asked s"
  sleep "$asked"
}
#job }

#credentials {
# The Secret's keys are variables. They reach curl in a file, so that no list of processes shows them. The token goes to
# the Hub alone: curl leaves it out where that redirects to another host.
curlrc=
quoted() { printf '%s' "$1" | tr -d '\r\n' | sed 's/[\\"]/\\&/g'; }
curl() {
  shift
  command curl -q ${curlrc:+-K "$curlrc"} "$@"
}
case $MODEL_SOURCE in
s3://*)
  region=${AWS_REGION:-us-east-1}
  endpoint=${AWS_ENDPOINT_URL:-https://s3.$region.amazonaws.com}
  key=$(printf '%s' "${MODEL_SOURCE#s3://}" | sed 's/%/%25/g; s/ /%20/g; s/#/%23/g; s/?/%3F/g; s/+/%2B/g')
  case $endpoint in
  http://* | https://*) ;;
  *)
    say 'AWS_ENDPOINT_URL of the Secret has to begin with http:// or https://'
    exit 64
    ;;
  esac
  MODEL_SOURCE=${endpoint%/}/$key
  url=$MODEL_SOURCE
  if [ -n "${AWS_ACCESS_KEY_ID:-}" ]; then
    curlrc=$(mktemp) || exit 1
    nothing=$(printf '' | sha256sum | cut -d' ' -f1)
    printf 'aws-sigv4 = "aws:amz:%s:s3"\nuser = "%s:%s"\nheader = "x-amz-content-sha256: %s"\n' "$(quoted "$region")" \
      "$(quoted "$AWS_ACCESS_KEY_ID")" "$(quoted "${AWS_SECRET_ACCESS_KEY:-}")" "$nothing" >"$curlrc" || exit 1
    [ -z "${AWS_SESSION_TOKEN:-}" ] ||
      printf 'header = "x-amz-security-token: %s"\n' "$(quoted "$AWS_SESSION_TOKEN")" >>"$curlrc"
  fi
  ;;
https://huggingface.co/*)
  if [ -n "${HF_TOKEN:-}" ]; then
    curlrc=$(mktemp) || exit 1
    printf 'header = "Authorization: Bearer %s"\n' "$(quoted "$HF_TOKEN")" >"$curlrc" || exit 1
  fi
  ;;
esac
#credentials }

# Whether the file is there, and has the wanted SHA-256. A checked file is remembered, as checking reads all of it.
present() {
  [ -s "$final" ] || return 1
  [ -n "$want" ] || return 0
  [ "$(cat "$sum_file" 2>/dev/null)" = "$want" ] && return 0
  say 'checking the SHA-256 of the file that is there'
  if [ "$(digest "$final")" = "$want" ]; then
    printf '%s' "$want" >"$sum_file"
    return 0
  fi
  say 'the file that is there has another SHA-256; it is replaced'
  return 1
}

# Whether the server has other bytes than we do: by ETag where both sides have one, else by length. Unknown means no.
changed() {
  head=$(mktemp) || return 1
  if ! request -I --max-time 60 -o /dev/null -D "$head"; then
    say 'the server does not say whether the model changed; the file that is there stays'
    return 1
  fi
  old=$(sed -n 1p "$tag_file" 2>/dev/null)
  new=$(header etag "$head")
  if [ -n "$old" ] && [ -n "$new" ]; then
    [ "$old" != "$new" ]
    return
  fi
  length=$(header content-length "$head")
  [ -n "$length" ] && [ "$length" != "$(size_of "$final")" ]
}

# Downloads to the temporary file, going on where an earlier attempt ended if the server still has the same bytes.
fetch() {
  tries=0
  while :; do
    known=$(validator "$tmp.head")
    [ -z "$known" ] || printf '%s' "$known" >"$tmp.tag"
    known=$(cat "$tmp.tag" 2>/dev/null)
    before=$(size_of "$tmp")
    set --
    if [ "$before" -gt 0 ]; then
      if [ -n "$known" ]; then
        set -- -C - -H "If-Range: $known"
      elif [ -n "$want" ]; then
        set -- -C -
      fi
    fi
    [ "$#" -eq 0 ] || { resumed=yes; say "going on after $before bytes"; }
    #job {
    limit=$(free)
    seen=$(version "$tmp.head")
    earlier=${seen:-${earlier:-}}
    #job }
    code=$(request --speed-limit 1024 --speed-time 120 -D "$tmp.head" -o "$tmp" -w '%{http_code}' "$@")
    status=$?
    #job {
    now=$(version "$tmp.head")
    if [ "$code" = 206 ] && is_other "${earlier:-}" "$now"; then
      earlier=
      rm -f -- "$tmp" "$tmp.tag" "$tmp.head"
      tries=$((tries + 1))
      [ "$tries" -lt 5 ] || return 1
      say 'the file on the server changed meanwhile; downloading from the beginning'
      continue
    fi
    if [ "$status" -eq 0 ] && [ "$code" != 200 ] && [ "$code" != 206 ]; then
      say "the server answered HTTP $code, and sent no file"
      rm -f -- "$tmp" "$tmp.tag" "$tmp.head"
      return 64
    fi
    #job }
    [ "$status" -ne 0 ] || return 0
    #job {
    [ "$code" = 000 ] || connected=yes
    have=$(size_of "$tmp")
    rest=$(header content-length "$tmp.head")
    if [ "$status" -eq 63 ] || { [ "$status" -eq 23 ] && full "${rest:-1048576}"; }; then
      [ "$code" = 206 ] || before=0
      say_full "$have" "${rest:+$((before + rest))}"
      return 64
    fi
    #job }
    case $status:$code in
    33:* | *:416) rm -f -- "$tmp" "$tmp.tag" "$tmp.head" ;;
    22:408 | 22:429) ;;
    22:4* | 1:* | 3:* | 47:* | 60:*)
      say "trying again would not help (curl $status, HTTP $code)"
      #job {
      told=$(header x-error-message "$tmp.head" | tr -cd '\040-\176' | cut -c1-300)
      [ -z "$told" ] || say "the server says: $told"
      #job }
      return 64
      ;;
    esac
    #job {
    if [ -z "$connected" ]; then
      say "cannot connect (curl $status)"
      return 1
    fi
    #job }
    [ "$(size_of "$tmp")" -le "$before" ] || tries=0
    tries=$((tries + 1))
    [ "$tries" -lt 5 ] || return 1
    #job {
    waits && continue
    #job }
    delay=$((pause << tries))
    say "the transfer ended early (curl $status, HTTP $code); trying again in $delay s"
    sleep "$delay"
  done
}

copy() {
  if [ -z "${HOST_FILE:-}" ]; then
    say 'a file of the node can only be served through the model cache, which is switched off'
    return 64
  fi
  #job {
  rm -f -- "$tmp"
  if full "$(size_of "$HOST_FILE")"; then
    say_full 0 "$(size_of "$HOST_FILE")"
    return 64
  fi
  #job }
  cp -- "$HOST_FILE" "$tmp" || return 1
}

obtain() {
  case $MODEL_SOURCE in http://* | https://*) fetch ;; *) copy ;; esac
}

#job {
# What was sent in place of a model; empty for anything else. The name of the source tells what it has to be.
impostor() {
  [ -s "$tmp" ] || { echo 'an empty file'; return; }
  case $(header content-encoding "$tmp.head") in
  '' | identity) ;;
  *) echo 'the file in a coding of its own (Content-Encoding)'; return ;;
  esac
  case $(head -c 256 "$tmp" | tr -d '\000\r\n\t ' | tr A-Z a-z) in
  '<!doctypehtml'* | '<html'*) echo 'a web page, such as that of a login' ;;
  'versionhttps://git-lfs'*) echo 'a Git LFS pointer' ;;
  *)
    case $(printf '%s' "${MODEL_SOURCE%%[?#]*}" | tr A-Z a-z):$(head -c 9 "$tmp" | od -An -v -tx1 | tr -d ' \n') in
    *.gguf:47475546*) ;;
    *.gguf:*) echo 'something that does not begin like a GGUF file' ;;
    *.safetensors:????????000000007b) ;;
    *.safetensors:*) echo 'something that does not begin like a safetensors file' ;;
    *.zip:504b*) ;;
    *.zip:*) echo 'something that does not begin like a ZIP archive' ;;
    esac
    ;;
  esac
}

# Whether a download that went on after an earlier one is to begin again.
once_more() {
  [ -n "$resumed" ] && [ -z "$again" ] || return 1
  again=yes
}

# The value of a header of any response in a dump: the Hub announces its files where it redirects.
announced() {
  tr -d '\r' <"$tmp.head" 2>/dev/null | awk -v name="$1:" '
    tolower($1) == name { sub(/^[^:]*:[ \t]*/, ""); value = $0 }
    END { print value }'
}

# Why the file cannot be the whole one that the server announced, or that its own header describes; empty if it may.
lacks() {
  here=$(size_of "$tmp")
  size=$(announced x-linked-size)
  hash=$(announced x-linked-etag | tr -d '"' | tr A-F a-f)
  least=$(printf '%s\n' "$facts" | sed -n 2p)
  if [ -n "$size" ] && [ "$size" != "$here" ]; then
    echo "it has $here bytes, and the server announced $size"
  elif [ "${#hash}" -eq 64 ] && [ "$hash" != "$sum" ]; then
    echo "it has the SHA-256 $sum, and the server announced $hash"
  elif [ -n "$least" ] && [ "$here" -lt "$least" ]; then
    echo "it has $here bytes, and its header describes $least"
  fi
}
#job }
publish() {
  #job {
  instead=$(impostor)
  if [ -n "$instead" ]; then
    say "the server sent $instead, and no model"
    rm -f -- "$tmp" "$tmp.tag" "$tmp.head"
    once_more && return 65
    return 64
  fi
  #job }
  sum=$(digest "$tmp")
  if [ -n "$want" ] && [ "$sum" != "$want" ]; then
    say "wrong SHA-256: the file has $sum, the Model demands $want"
    rm -f -- "$tmp" "$tmp.tag" "$tmp.head"
    return 65
  fi
  #job {
  facts=$(describe "$tmp" 2>/dev/null) || facts=
  why=$(lacks)
  if [ -n "$why" ]; then
    say "the file is not whole: $why"
    rm -f -- "$tmp" "$tmp.tag" "$tmp.head"
    once_more && return 65
    return 1
  fi
  #job }
  mv -f -- "$tmp" "$final" || return 1
  printf '%s' "$sum" >"$sum_file"
  header etag "$tmp.head" >"$tag_file"
  rm -f -- "$tmp.tag" "$tmp.head"
}

#job {
# Removes the files of other sources from the claim. Their directories are beside ours, each with its cache key for a
# name: exactly 16 hexadecimal digits. Nothing else is touched, and no trouble here makes the download a failure.
tidy() {
  [ -n "${KEEP_KEYS+set}" ] || return 0
  own=${CACHE_ROOT:-$dir}
  for other in "${own%/*}"/*; do
    key=${other##*/}
    case $key in *[!0123456789abcdef]*) continue ;; esac
    [ "${#key}" -eq 16 ] && [ -d "$other" ] && [ ! -L "$other" ] && [ "$key" != "${own##*/}" ] || continue
    case " $KEEP_KEYS " in *" $key "*) continue ;; esac
    say "removing $other: it is of an earlier source, and nothing was seen to use it"
    rm -rf -- "$other" || say "$other cannot be removed"
  done
}

# What a GGUF file says of itself, as JSON: the keys that the status shows, and the number of parameters if the first 32
# MiB have the whole header, and the file is no part of a model. In a second line the bytes that the file has at least.
# The file may be anything: nothing of it gets further than as a number or a short ASCII text.
describe() {
  od -An -v -tu1 -N 33554432 "$1" | awk '
    function more() { if ((getline) <= 0) exit; at = 1 }
    function number(bytes, value, scale) {
      for (scale = 1; bytes-- > 0; scale *= 256) {
        if (at++ >= NF) more()
        value += $at * scale
      }
      return value
    }
    function skip(bytes) {
      while (bytes > NF - at) {
        bytes -= NF - at + 1
        more()
      }
      at += bytes
    }
    function text(most, left, value, char) {
      for (left = number(8); left > 0 && most-- > 0; left--) {
        char = number(1)
        if (char >= 32 && char < 127 && char != 34 && char != 92) value = value sprintf("%c", char)
      }
      skip(left)
      return value ""
    }
    function items(type, left) {
      type = number(4)
      left = number(8)
      if (type in width) skip(left * width[type])
      else if (type == 8) while (left-- > 0) skip(number(8))
      else exit
    }
    function pair(key, type, name, value) {
      key = text(80)
      type = number(4)
      if (arch != "" && index(key, arch ".") == 1) key = substr(key, length(arch) + 1)
      name = key in title ? title[key] : ""
      if (type == 9) items()
      else if (type == 8 && name in texts && !(name in said)) {
        value = text(128)
        said[name] = "\"" value "\""
        if (name == "architecture") arch = value
      } else if (type == 8) skip(number(8))
      else if (type in width) {
        value = number(width[type])
        if (key == "general.alignment" && value > 0) alignment = value
        if (key == "split.count" && value > 1) split_ = 1
        if (name != "" && !(name in texts) && !(name in said) && type in most && value < most[type])
          said[name] = sprintf("%.0f", value)
      } else exit
    }
    NR == 1 {
      split("0 1 1 1 2 2 3 2 4 4 5 4 6 4 7 1 10 8 11 8 12 8", sizes, " ")
      for (i = 1; i in sizes; i += 2) width[sizes[i]] = sizes[i + 1]
      split("0 256 1 128 2 65536 3 32768 4 4294967296 5 2147483648 10 9007199254740992 11 9007199254740992", sizes, " ")
      for (i = 1; i < 17; i += 2) most[sizes[i]] = sizes[i + 1] + 0
      texts["architecture"] texts["modelName"] texts["license"]
      title["general.architecture"] = "architecture"
      title["general.name"] = "modelName"
      title["general.license"] = "license"
      title["general.file_type"] = "fileType"
      title[".context_length"] = "contextLength"
      title[".embedding_length"] = "embeddingSize"
      title[".block_count"] = "layerCount"
      title[".attention.head_count"] = "headCount"
      title[".attention.head_count_kv"] = "headCountKv"
      title[".attention.key_length"] = "keyLength"
      title[".attention.value_length"] = "valueLength"
      title[".attention.sliding_window"] = "slidingWindow"
      title[".attention.kv_lora_rank"] = "kvLoraRank"
      alignment = 32
      split("0 1 4 1 1 2 2 32 18 3 32 20 6 32 22 7 32 24 8 32 34 9 32 40 10 256 84 11 256 110 12 256 144 13 256 176 " \
        "14 256 210 15 256 292 16 256 66 17 256 74 18 256 98 19 256 50 20 32 18 21 256 110 22 256 82 23 256 136 " \
        "24 1 1 25 1 2 26 1 4 27 1 8 28 1 8 29 256 56 30 1 2 34 256 54 35 256 66 39 32 17 40 64 36 41 128 18", blocks, " ")
      for (i = 1; i in blocks; i += 3) {
        weights[blocks[i]] = blocks[i + 1]
        bytes_[blocks[i]] = blocks[i + 2]
      }
      at = 0
      if (number(4) != 1179993927) exit
      version = number(4)
      if (version != 2 && version != 3) exit
      tensors = number(8)
      header = 1
      for (left = number(8); left > 0; left--) pair()
      for (left = tensors; left > 0; left--) {
        skip(number(8))
        dimensions = number(4)
        for (elements = 1; dimensions > 0; dimensions--) elements *= number(8)
        parameters += elements
        type = number(4)
        end = number(8)
        if (type in weights) end += elements / weights[type] * bytes_[type]
        if (end > last) last = end
      }
      position = (NR - 1) * 16 + at
      least = position + (alignment - position % alignment) % alignment + last
      whole = 1
      exit
    }
    END {
      if (!header) exit
      printf "{\"fileVersion\":%d", version
      for (name in said) printf ",\"%s\":%s", name, said[name]
      if (!split_ && tensors < 2147483648) printf ",\"tensorCount\":%.0f", tensors
      if (!split_ && whole && parameters > 0 && parameters < 9007199254740992) printf ",\"parameterCount\":%.0f", parameters
      printf "}\n"
      if (whole && last > 0 && least < 9007199254740992) printf "%.0f\n", least
    }'
}

add_facts() {
  [ -n "$facts" ] || facts=$(describe "$final")
  facts=$(printf '%s\n' "$facts" | sed -n 1p)
  [ -n "$facts" ] && said=$(cat "$1") && printf '%s,"gguf":%s}' "${said%\}}" "$facts" >"$1"
}
#job }

# What the Model's status shall know, as JSON in the container's termination message.
report() {
  etag=$(sed -n 1p "$tag_file" 2>/dev/null | tr -d '\000-\037\177-\377' | cut -c1-256 | sed 's/[\\"]/\\&/g')
  printf '{"size":%s,"sha256":"%s","etag":"%s"}' "$(size_of "$final")" "$(cat "$sum_file" 2>/dev/null)" "$etag" \
    2>/dev/null >"${TERMINATION_LOG:-/dev/termination-log}" || :
  #job {
  add_facts "${TERMINATION_LOG:-/dev/termination-log}" 2>/dev/null || :
  tidy
  #job }
  exit 0
}

trust || exit 1
mkdir -p -- "${CACHE_DIR:-$dir}" || exit 1

# One download at a time: pods may share the directory. Where locks do not work, each pod has a temporary file of its own.
lock() {
  lock_file=$dir/.$base.lock
  command -v flock >/dev/null && (: >"$lock_file") 2>/dev/null || return 1
  exec 9>"$lock_file"
  flock -n 9 2>/dev/null && return 0
  say 'waiting for another pod that downloads the same file'
  flock 9
}
if ! lock; then
  tmp=$final.${HOSTNAME:-pod}.tmp
  trap 'rm -f -- "$tmp" "$tmp.tag" "$tmp.head"' EXIT
fi

stale=
if present; then
  case ${REFRESH_POLICY:-}:$want:$MODEL_SOURCE in
  OnChange::http://* | OnChange::https://*) changed || report ;;
  *) report ;;
  esac
  say 'the model changed on the server'
  stale=yes
fi

resumed=
obtain && publish
result=$?
if [ "$result" -eq 65 ] && [ -n "$resumed" ]; then
  say 'downloading again from the beginning'
  obtain && publish
  result=$?
fi
[ "$result" -ne 0 ] || report
if [ -n "$stale" ]; then
  say 'the download failed; the file that is there stays'
  report
fi
exit "$result"
