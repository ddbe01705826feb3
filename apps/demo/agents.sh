#!/usr/bin/env bash
# agents.sh MODEL_DIR PYTHON [--seed N] [--folder DIR]: a task that needs a tool. `./dev tour agents` calls it
# when binary, model and the environment `agents` are ready; PYTHON is that of the environment.
#
# The model learns to add three numbers with a calculator: by SFT on 200 dialogues, then by RL from what
# docs/examples/calculator_agent.py does with it. All models are judged on the same 200 held-out problems.
# What is done is not done again: the same command goes on where an interrupted one stopped.
set -euo pipefail
root=$(cd "$(dirname "${BASH_SOURCE[0]}")/../.." && pwd)
[[ $# -ge 2 ]] || { echo "usage: agents.sh MODEL_DIR PYTHON [--seed N] [--folder DIR]" >&2 && exit 2; }
model=$(cd "$1" && pwd) python=$(cd "$(dirname "$2")" && pwd -P)/$(basename "$2") seed=1 folder=''
shift 2
while (($#)); do
  case $1 in
  --seed) seed=$2 ;;
  --folder) folder=$2 ;;
  *) echo "agents.sh: unknown option $1" >&2 && exit 2 ;;
  esac
  shift 2
done
mkdir -p "${folder:=${TROUPE_HOME:-$HOME/.cache/troupe}/runs/agents-$seed}"
folder=$(cd "$folder" && pwd)
troupe=${TROUPE_BUILD_DIR:-$root/build}/troupe
export PYTHONPATH=$root/docs/examples PYTHONDONTWRITEBYTECODE=1
server=''
trap '[[ -z $server ]] || kill "$server" 2>/dev/null || true' EXIT

trained() { # RUN: the model of its last checkpoint
  local found=("$folder/$1"/ckpt/step_*/model)
  [[ -d ${found[-1]} ]] && echo "${found[-1]}"
}

judge() { # NAME MODEL [--broken]: NAME.jsonl
  [[ ! -s $folder/$1.jsonl ]] || return 0
  echo "held-out problems: $1"
  "$troupe" serve --model "$2" --port 0 --served-model-name policy >"$folder/serve.log" 2>&1 &
  server=$!
  until grep -q http "$folder/serve.log"; do
    kill -0 "$server" 2>/dev/null || { cat "$folder/serve.log" >&2 && exit 1; }
    sleep 0.1
  done
  "$python" "$root/apps/demo/agents/score.py" "$(grep -o 'http://.*/v1' "$folder/serve.log")" \
    "$folder/rows/heldout.jsonl" "$folder/$1.jsonl" "${@:3}"
  kill -INT "$server" && wait "$server"
  server=''
}

"$python" "$root/apps/demo/agents/rows.py" "$folder/rows" "$seed"

# A model folder with a chat template that knows calls of tools; every model that is trained from it has it, too.
base=$folder/base
mkdir -p "$base"
ln -sf "$model"/* "$base/"
rm -f "$base/chat_template.jinja"
cp "$root/apps/demo/agents/chat_template.jinja" "$base/"

judge base "$base"
"$troupe" train sft --run.path "$folder/train_sft" --actor.model_name_or_path "$base" \
  --data.dataset "$folder/rows/sft.jsonl" --data.multiturn true --train.seed "$seed" \
  --actor.adam.lr 3e-5 --train.batch_size 8 --train.max_epochs 2 --logger.tensorboard false
judge sft "$(trained train_sft)"
# An agent that is confined can read the folder in which the run is started.
cd "$root/docs/examples"
"$troupe" train ppo "$root/apps/demo/agents/rl.yaml" --run.path "$folder/train_rl" --train.seed "$seed" \
  --actor.model_name_or_path "$(trained train_sft)" --data.prompt_dataset "$folder/rows/train.jsonl" \
  --env.command "$(printf %q "$python") calculator_agent.py"
judge rl "$(trained train_rl)"
judge broken "$(trained train_rl)" --broken
"$python" "$root/apps/demo/agents/table.py" "$folder"
