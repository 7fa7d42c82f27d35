#!/usr/bin/env bash
# GNU bash 5.2.15 (Debian 12), beside dash.
#
# A variable without quotes is divided into words at its blanks, unless the word has a single $ that begins no expansion:
# then it stays one word, though the $ stands for itself in both shells. With \$ or '$' in its place it is divided.
# So a script that builds an option such as --stop=$WORDS$ passes one argument by bash and two by dash.
# Seen: 1 and 2 words for $E$, and 2 and 2 for $E\$.
set -euo pipefail
seen=""
for shell in bash dash; do
  for word in '$E$' '$E\$'; do
    seen="$seen $(E='a b' "$shell" -c "set -- $word; echo \$#")"
  done
done
echo "bash ${BASH_VERSION} and dash:$seen"
[ "$seen" = " 1 2 2 2" ]
