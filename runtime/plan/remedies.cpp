#include "runtime/plan/remedies.hpp"

#include "runtime/core/texts.hpp"

#include <algorithm>
#include <cstddef>
#include <functional>

namespace troupe::plan {
namespace {

// A change of one setting. `apply` changes the facts and returns false when there is nothing to
// change. Two changes of the same setting are not combined.
struct Change {
  std::string setting;
  std::string text;  // the flag with its value
  std::function<bool(RunFacts&)> apply;
};

constexpr std::int64_t kLeastRows = 256;  // of a micro-batch or a step that is still worth it
constexpr std::int64_t kGiB = std::int64_t{1} << 30;

template <class Facts, class F>
bool each(RunFacts& run, F&& change) {
  bool changed = false;
  for (Role& role : run.roles) {
    if (auto* facts = std::get_if<Facts>(&role.facts)) changed = change(*facts) || changed;
  }
  return changed;
}

// Sets `place` to `value` where it differs.
template <class T>
bool set(T& place, const T& value) {
  if (place == value) return false;
  place = value;
  return true;
}

bool set_rows(RunFacts& run, std::int64_t rows) {
  if (run.batch.rows_max <= rows) return false;
  run.batch.rows_max = rows;
  each<TrainerFacts>(run, [&](TrainerFacts& facts) { return set(facts.rows, rows); });
  each<ScorerFacts>(run, [&](ScorerFacts& facts) { return set(facts.rows, rows); });
  return true;
}

bool set_ranks(RunFacts& run, std::size_t role, std::int64_t count) {
  auto& facts = std::get<TrainerFacts>(run.roles[role].facts);
  if (run.lanes_set && count > run.batch.lanes) return false;
  facts.ranks.count = count;
  run.roles[role].count = count;
  if (run.lanes_set) return true;
  facts.lanes = count;
  if (role == 0) run.batch.lanes = run.batch.ranks = count;
  return true;
}

bool set_panels(RunFacts& run, kernels::PanelDtype from, kernels::PanelDtype to) {
  const auto change = [&](auto& facts) { return facts.panels == from && set(facts.panels, to); };
  bool changed =
      each<TrainerFacts>(run, [&](TrainerFacts& facts) { return !facts.fixed && change(facts); });
  changed = each<EngineFacts>(run, change) || changed;
  return each<ScorerFacts>(run,
                           [&](ScorerFacts& facts) { return !facts.fixed && change(facts); }) ||
         changed;
}

void add_row_changes(const RunFacts& run, std::vector<Change>& changes) {
  const std::int64_t least = std::max(run.batch.shared_rows + run.batch.sample_rows, kLeastRows);
  for (std::int64_t rows = run.batch.rows_max / 2; rows >= least; rows /= 2) {
    changes.push_back({"rows", "--train.micro_tokens_max " + std::to_string(rows),
                       [rows](RunFacts& facts) { return set_rows(facts, rows); }});
  }
}

void add_trainer_changes(const RunFacts& run, std::size_t role, std::vector<Change>& changes) {
  changes.push_back(
      {"checkpointing", "--actor.gradient_checkpointing_enable true", [](RunFacts& facts) {
         return each<TrainerFacts>(facts, [](auto& one) { return set(one.checkpointing, true); });
       }});
  const auto& own = std::get<TrainerFacts>(run.roles[role].facts);
  for (std::int64_t stage = own.ranks.zero_stage + 1; stage <= 3; ++stage) {
    changes.push_back({"stage", "--zero-stage " + std::to_string(stage), [stage](RunFacts& facts) {
                         return each<TrainerFacts>(facts, [stage](auto& one) {
                           return set(one.ranks.zero_stage, stage);
                         });
                       }});
  }
  for (std::int64_t count = 2 * own.ranks.count; count <= run.cluster.devices(); count *= 2) {
    changes.push_back({"ranks", run.roles[role].flag + " " + std::to_string(count),
                       [role, count](RunFacts& facts) { return set_ranks(facts, role, count); }});
  }
  if (run.cluster.on_host()) return;
  changes.push_back({"offload", "--offload", [](RunFacts& facts) {
                       return each<TrainerFacts>(
                           facts, [](auto& one) { return set(one.ranks.offload, true); });
                     }});
}

void add_engine_changes(const EngineFacts& own, std::vector<Change>& changes) {
  for (std::int64_t bytes = own.keys_bytes_max / 2; bytes >= std::max(kGiB / 4, own.keys_bytes_min);
       bytes /= 2) {
    const std::string text = core::printed("--rollout.kv_cache_gb %g",
                                           static_cast<double>(bytes) / static_cast<double>(kGiB));
    changes.push_back({"keys", text, [bytes](RunFacts& facts) {
                         return each<EngineFacts>(
                             facts, [bytes](auto& one) { return set(one.keys_bytes_max, bytes); });
                       }});
  }
  for (std::int64_t rows = own.step_rows / 2; rows >= kLeastRows; rows /= 2) {
    changes.push_back({"step", "--rollout.max_num_batched_tokens " + std::to_string(rows),
                       [rows](RunFacts& facts) {
                         return each<EngineFacts>(
                             facts, [rows](auto& one) { return set(one.step_rows, rows); });
                       }});
  }
}

std::vector<Change> changes_for(const RunFacts& run, std::size_t role) {
  std::vector<Change> changes;
  const RoleFacts& facts = run.roles[role].facts;
  if (const auto* engine = std::get_if<EngineFacts>(&facts)) {
    add_engine_changes(*engine, changes);
  } else {
    add_row_changes(run, changes);
  }
  if (std::holds_alternative<TrainerFacts>(facts)) add_trainer_changes(run, role, changes);
  using kernels::PanelDtype;
  changes.push_back({"panels", "--actor.param_dtype bf16", [](RunFacts& all) {
                       return set_panels(all, PanelDtype::kF32, PanelDtype::kBf16);
                     }});
  return changes;
}

// Whether the changes apply and no shortfall of the role is left.
bool works(RunFacts run, const Shortfall& shortfall, const std::vector<const Change*>& changes) {
  for (const Change* change : changes) {
    if (!change->apply(run)) return false;
  }
  const auto plan = plan_of(run);
  if (!plan) return false;
  return std::none_of(plan->shortfalls.begin(), plan->shortfalls.end(), [&](const auto& left) {
    return left.role == shortfall.role || (left.host && shortfall.host);
  });
}

// The first combination of `size` changes of different settings, after those in `chosen`, that
// works.
bool choose(const RunFacts& run,
            const Shortfall& shortfall,
            const std::vector<Change>& changes,
            std::size_t size,
            std::vector<const Change*>& chosen) {
  if (chosen.size() == size) return works(run, shortfall, chosen);
  const std::size_t begin =
      chosen.empty() ? 0 : static_cast<std::size_t>(chosen.back() - changes.data()) + 1;
  for (std::size_t i = begin; i < changes.size(); ++i) {
    const bool again = std::any_of(chosen.begin(), chosen.end(), [&](const Change* other) {
      return other->setting == changes[i].setting;
    });
    if (again) continue;
    chosen.push_back(&changes[i]);
    if (choose(run, shortfall, changes, size, chosen)) return true;
    chosen.pop_back();
  }
  return false;
}

}  // namespace

std::string use_of_idle(const RunFacts& facts, const Plan& plan) {
  if (plan.placement.idle == 0 || !plan.fits()) return {};
  for (std::size_t role = 0; role < facts.roles.size(); ++role) {
    const bool engine = std::holds_alternative<EngineFacts>(facts.roles[role].facts);
    if (!engine || !facts.roles[role].named.empty()) continue;
    RunFacts more = facts;
    more.roles[role].count += plan.placement.idle;
    const auto made = plan_of(more);
    if (made && made->fits())
      return facts.roles[role].flag + " " + std::to_string(more.roles[role].count);
  }
  if (!facts.roles.front().named.empty()) return {};
  RunFacts more = facts;
  for (std::int64_t count = 2 * facts.roles.front().count;
       count <= facts.roles.front().count + plan.placement.idle; count *= 2) {
    RunFacts tried = facts;
    if (!set_ranks(tried, 0, count)) break;
    const auto made = plan_of(tried);
    if (!made || !made->fits()) break;
    more = std::move(tried);
  }
  if (more.roles.front().count == facts.roles.front().count) return {};
  return facts.roles.front().flag + " " + std::to_string(more.roles.front().count);
}

std::vector<std::string> remedy(const RunFacts& facts, const Shortfall& shortfall) {
  constexpr std::size_t kChanges_max = 3;
  const std::vector<Change> changes = changes_for(facts, shortfall.role);
  std::vector<std::string> texts;
  for (std::size_t size = 1; size <= kChanges_max; ++size) {
    std::vector<const Change*> chosen;
    if (!choose(facts, shortfall, changes, size, chosen)) continue;
    for (const Change* change : chosen)
      texts.push_back(change->text);
    break;
  }
  return texts;
}

}  // namespace troupe::plan
