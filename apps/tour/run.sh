#!/usr/bin/env bash
# run.sh MODEL_DIR [FOLDER]: runs the tour. `./dev tour` calls it when binary and model are ready.
#
# Trains one small task, one-digit arithmetic, in five ways: SFT, a reward model from answers that a
# rule has judged, PPO against that reward model with critic and reference, DPO and KTO on the same
# judgements. At the end it prints a table: what the rule says of each model (the truth) beside what
# the reward model says. It skips a stage that is finished: delete FOLDER/STAGE.done to repeat it. Five
# to eight minutes on two cores with SmolLM2-135M. Needs bash, awk, sed and the binary.
set -euo pipefail
root=$(cd "$(dirname "${BASH_SOURCE[0]}")/../.." && pwd)
troupe=${TROUPE:-$root/build/troupe}
base=$(cd "$1" && pwd)
tour=${2:-${TROUPE_HOME:-$HOME/.cache/troupe}/runs/tour}
seed=1
mkdir -p "$tour"
cd "$tour"
began=$SECONDS

say() { printf '\n== %s\n' "$*"; }

# stage NAME TEXT COMMAND...: runs the command, unless an earlier call of the tour finished it.
stage() {
  local name=$1 text=$2 from=$SECONDS
  shift 2
  if [[ -e $name.done ]]; then
    printf '== %s: done before\n' "$text"
    return
  fi
  say "$text"
  if ! "$@" >"$name.log" 2>&1; then
    tail -n 20 "$name.log" >&2
    printf 'tour: stage %s failed; its log is %s\n' "$name" "$tour/$name.log" >&2
    exit 1
  fi
  tail -n 3 "$name.log" | sed 's/^/   /'
  printf '   (%d s)\n' $((SECONDS - from))
  touch "$name.done"
}

trained() { # RUN: prints the model folder of a run's last checkpoint that has one
  local found
  found=$(ls -d "$1"/ckpt/step_*/model 2>/dev/null | tail -n 1)
  [[ -n $found ]] || { echo "tour: $1 left no model" >&2 && return 1; }
  printf '%s\n' "$found"
}

sampling=(--max-new-tokens 6 --stop '\n' --temperature 1.0 --seed $seed)
columns=(--input-key prompt --label-key answer)

# Makes the data of the task. The target for SFT begins with a space (" 11" after "9 + 2 ="), as the
# model's own answers do.
prepare() {
  "$troupe" data arithmetic --out data --seed $seed --held-out 40
  sed -E 's/"answer": "([^"]*)"/"answer": "\1", "target": " \1"/' data/train.jsonl >data/sft.jsonl
}

train() { # METHOD RUN FROM [flags]: supervised training that starts from a model
  local method=$1 run=$2 from=$3
  shift 3
  "$troupe" train "$method" --actor.model_name_or_path "$from" --run.path "$run" \
    --log.format plain --logger.tensorboard false --train.seed $seed "$@"
}

sft() {
  train sft sft "$base" --data.dataset data/sft.jsonl --data.input_key prompt \
    --data.output_key target --data.max_len 64 --actor.adam.lr 1e-5 --train.batch_size 16 \
    --train.max_epochs 2
}

# Samples answers of the base model and of the SFT model to the training problems and, to test the
# reward model, to the held-out ones; the rule says which are right. The reward model learns from pairs
# of both models, so that it sees mistakes of many kinds; DPO and KTO learn from the SFT model's own
# answers.
judge() {
  local set name model
  for set in train heldout; do
    for name in base sft; do
      model=$base
      [[ $name == sft ]] && model=$(trained sft)
      "$troupe" generate --model "$model" --data data/$set.jsonl "${columns[@]}" --n 16 \
        "${sampling[@]}" --out answers_${name}_$set.jsonl --overwrite
      "$troupe" score --data answers_${name}_$set.jsonl "${columns[@]}" --rule exact \
        --out judged_${name}_$set.jsonl --reward-key label --overwrite
      "$troupe" score --data answers_${name}_$set.jsonl "${columns[@]}" --rule exact --pairs \
        --out pairs_${name}_$set.jsonl --overwrite
      # An answer without a token teaches nothing.
      sed -i -E '/"(response|chosen|rejected)":""/d' judged_${name}_$set.jsonl pairs_${name}_$set.jsonl
    done
    cat pairs_base_$set.jsonl pairs_sft_$set.jsonl >pairs_$set.jsonl
  done
}

pair_keys=(--data.prompt_key prompt --data.chosen_key chosen --data.rejected_key rejected
  --data.max_len 64)

reward_model() {
  train rm rm "$(trained sft)" --data.dataset pairs_train.jsonl "${pair_keys[@]}" \
    --eval.dataset pairs_heldout.jsonl --actor.adam.lr 2e-5 --train.batch_size 16 \
    --train.max_epochs 6
}

pair_accuracy() {
  "$troupe" eval --reward-model "$(trained rm)" --data pairs_heldout.jsonl --input-key prompt
}

ppo() {
  "$troupe" train ppo --actor.model_name_or_path "$(trained sft)" --run.path ppo \
    --reward.model_name_or_path "$(trained rm)" --reward.normalize stored \
    --data.prompt_dataset data/train.jsonl --data.input_key prompt --data.label_key answer \
    --data.prompt_max_len 64 --rollout.batch_size 16 --rollout.n_samples_per_prompt 4 \
    --rollout.max_new_tokens 6 --rollout.stop '\n' --train.batch_size 32 \
    --algo.advantage.estimator gae --algo.objective ppo --algo.kl.init_coef 0.02 \
    --algo.kl.estimator k1 --algo.kl.use_loss false --actor.adam.lr 5e-6 \
    --critic.adam.lr 1e-5 --critic.freezing_steps 2 --train.max_steps 14 \
    --log.format plain --logger.tensorboard false --train.seed $seed
}

dpo() {
  train dpo dpo "$(trained sft)" --data.dataset pairs_sft_train.jsonl "${pair_keys[@]}" \
    --actor.adam.lr 5e-6 --train.batch_size 16 --train.max_epochs 3
}

kto() {
  train kto kto "$(trained sft)" --data.dataset judged_sft_train.jsonl --data.input_key prompt \
    --data.output_key response --data.label_key label --data.max_len 64 \
    --actor.adam.lr 5e-6 --train.batch_size 32 --train.max_epochs 1
}

evaluate() { # NAME MODEL
  "$troupe" eval --model "$2" --data data/heldout.jsonl "${columns[@]}" --rule exact --n 8 --k 1,8 \
    "${sampling[@]}" --reward-model "$(trained rm)" --out samples_"$1".jsonl --json >"$1".json
  tail -n 1 "$1".json
}

figure() { # FILE NAME: prints "mean low high" of one figure over all problems
  sed -E 's/.*"all":\{(.*)/\1/; s/.*"'"$2"'":\{"mean":([^,]*),"low":([^,]*),"high":([^}]*)\}.*/\1 \2 \3/' "$1"
}

table() {
  local name
  printf '\n%-6s  %-28s  %-30s  %-8s  %s\n' model 'accuracy by the rule (truth)' \
    "the reward model's score" 'pass@8' 'against SFT'
  for name in base sft ppo dpo kto; do
    printf '%s %s %s %s\n' $name "$(figure $name.json 'pass@1')" \
      "$(figure $name.json reward_model)" "$(figure $name.json 'pass@8')"
  done | awk '
    { line[NR] = $0 }
    $1 == "sft" { truth = $2; score = $5; pass = $8 }
    END {
      for (i = 1; i <= NR; ++i) {
        split(line[i], f, " ")
        said = ""
        if (f[1] != "sft" && f[1] != "base") {
          # "within its interval": the SFT accuracy lies in the interval of this model.
          better = f[2] > truth ? "accuracy up" : f[2] < truth ? "accuracy DOWN" : "accuracy equal"
          if (f[3] <= truth && truth <= f[4]) better = better " (within its interval)"
          rated = f[5] > score ? "score up" : "score down"
          said = better ", " rated
          if (f[4] < truth && f[5] > score) said = said ": it learned to please the reward model"
          if (f[8] < pass) said = said "; answers less varied (pass@8 down)"
        }
        printf "%-6s  %5.3f  [%5.3f, %5.3f]         %+6.3f  [%+6.3f, %+6.3f]        %5.3f     %s\n",
          f[1], f[2], f[3], f[4], f[5], f[6], f[7], f[8], said
      }
    }'
  printf '\n40 held-out problems x 8 samples at temperature 1; intervals: 95 %% bootstrap over problems.\n'
  printf 'The reward model learned from answers of the base and the SFT model; on held-out pairs:\n'
  sed -n 's/^/  /p' pair_accuracy.log
}

stage prepare 'the task: one-digit sums and differences' prepare
stage sft 'SFT: learn the answers of the training problems' sft
stage judge 'sample 16 answers a problem from base and SFT model; the rule says which are right; pairs' judge
stage rm 'reward model from the pairs' reward_model
stage pair_accuracy 'the reward model on pairs it has not seen' pair_accuracy
stage ppo 'PPO against the reward model, with critic and reference' ppo
stage dpo 'DPO on the pairs, from the SFT model' dpo
stage kto 'KTO on the judged answers, from the SFT model' kto
stage eval_base 'evaluate the base model' evaluate base "$base"
for name in sft ppo dpo kto; do
  stage eval_$name "evaluate the $name model" evaluate $name "$(trained $name)"
done
table
printf '\n%d min %02d s; everything is in %s\n' $(((SECONDS - began) / 60)) \
  $(((SECONDS - began) % 60)) "$tour"
