# Puts several files of one place below CACHE_DIR, each as download.sh does with one: that script is the function below.
#
# MODEL_FILES has their paths, one a line, the one that is served first; MODEL_SOURCE is what comes before each of them.
# The termination message has the size of all, and of one file alone all that download.sh says.
set -u

one() (
#download.sh
)

log=${TERMINATION_LOG:-/dev/termination-log}
said=$(mktemp) || exit 1
total=0
count=0
facts=
CACHE_ROOT=$CACHE_DIR
last=$(printf '%s\n' "$MODEL_FILES" | tail -n 1)
IFS='
'
set -f
for file in $MODEL_FILES; do
  (
    set +f
    unset IFS
    case $MODEL_SOURCE in
    s3://*) MODEL_SOURCE=$MODEL_SOURCE$file ;;
    *) MODEL_SOURCE=$MODEL_SOURCE$(printf '%s' "$file" | sed 's/%/%25/g; s/#/%23/g; s/?/%3F/g') ;;
    esac
    MODEL_PATH=$CACHE_ROOT/$file
    CACHE_DIR=${MODEL_PATH%/*}
    TERMINATION_LOG=$said
    [ "$file" = "$last" ] || unset KEEP_KEYS
    printf 'model-downloader: %s\n' "$file" >&2
    one
  ) || exit
  size=$(sed -n 's/^{"size":\([0-9]*\),.*/\1/p' "$said")
  total=$((total + ${size:-0}))
  count=$((count + 1))
  [ "$count" -gt 1 ] || facts=$(cat "$said")
done
if [ "$count" -gt 1 ]; then
  case $facts in
  *',"gguf":'*) facts="{\"size\":$total,\"gguf\":${facts#*,\"gguf\":}" ;;
  *) facts="{\"size\":$total}" ;;
  esac
fi
printf '%s' "$facts" 2>/dev/null >"$log" || :
