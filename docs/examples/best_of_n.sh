#!/usr/bin/env bash
# Samples every prompt of some files, scores the answers by a rule, and keeps the best of each
# prompt. Stop it at any time: the same command goes on where it was.
#
# usage: best_of_n.sh MODEL LABEL_COLUMN FILE.jsonl...
# Rows have the columns `prompt` and LABEL_COLUMN. Writes FILE.best.jsonl next to each file.
set -euo pipefail
model=$1 label=$2
shift 2
troupe=${TROUPE:-build/troupe}

for file in "$@"; do
  base=${file%.jsonl}
  [[ -e $base.best.jsonl ]] && continue
  [[ -e $base.answers.jsonl ]] ||
    "$troupe" generate --model "$model" --data "$file" --n "${N:-4}" \
      --max-new-tokens "${MAX_NEW_TOKENS:-64}" --temperature 1 --seed 1 --out "$base.answers.jsonl"
  "$troupe" score --data "$base.answers.jsonl" --rule last_number --label-key "$label" --best-of-n \
    --out "$base.best.jsonl"
  echo "$file: $(wc -l <"$base.best.jsonl") best answers"
done
