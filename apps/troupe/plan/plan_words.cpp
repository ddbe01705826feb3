#include "apps/troupe/plan/plan_words.hpp"

#include "runtime/core/texts.hpp"
#include "runtime/plan/remedies.hpp"

#include <algorithm>
#include <cmath>

namespace troupe::app {
namespace {

using plan::Cluster;

// "1 pass", "3 passes".
std::string count_of(std::int64_t count, const std::string& what, const char* plural = "s") {
  return grouped(count) + " " + what + (count == 1 ? "" : plural);
}

std::string joined(const std::vector<std::string>& parts) {
  std::string text;
  for (std::size_t i = 0; i < parts.size(); ++i)
    text += (i == 0 ? "" : i + 1 < parts.size() ? ", " : " and ") + parts[i];
  return text;
}

// Why no setting helps.
std::string no_remedy(const plan::Role& role) {
  if (std::holds_alternative<plan::TrainerFacts>(role.facts))
    return "no setting mends it; take cards with more memory, more of them, or a smaller model";
  return "no setting mends it: this role computes on one device (docs/scale.md, tensor parallel); "
         "take cards with more memory or a smaller model";
}

std::string shortfall_words(const plan::RunFacts& facts,
                            const plan::Plan& plan,
                            const plan::Shortfall& shortfall) {
  const plan::Role& role = facts.roles[shortfall.role];
  const plan::MemoryUse& memory = plan.memory[shortfall.role];
  std::string text = "does not fit: " + role.name + " on " + shortfall.where + ": " +
                     gigabytes(shortfall.need) + " GB of " + gigabytes(shortfall.have);
  if (!shortfall.host) {
    const plan::Kind kind = memory.largest();
    text += ", " + gigabytes(memory.device(kind)) + " of it " +
            std::string(plan::kKindNames[static_cast<std::size_t>(kind)]);
  }
  const std::vector<std::string> settings = plan::remedy(facts, shortfall);
  if (settings.empty()) return text + "; " + no_remedy(role);
  return text + "; it fits with " + joined(settings);
}

}  // namespace

std::string gigabytes(std::int64_t bytes) {
  const double gb = static_cast<double>(bytes) / 1e9;
  return core::printed("%.*f", gb >= 100 ? 0 : gb >= 10 ? 1 : gb >= 1 ? 2 : 3, gb);
}

std::string grouped(std::int64_t count) {
  std::string digits = std::to_string(count);
  for (auto at = static_cast<std::ptrdiff_t>(digits.size()) - 3; at > 0; at -= 3)
    digits.insert(static_cast<std::size_t>(at), ",");
  return digits;
}

std::string devices_words(const std::vector<std::int64_t>& devices, const Cluster& cluster) {
  const auto [first, last] = std::minmax_element(devices.begin(), devices.end());
  if (cluster.on_host() || *first == *last) return cluster.name_of(*first);
  const std::int64_t begin = cluster.node_of(*first), end = cluster.node_of(*last);
  const auto number = [&](std::int64_t device) {
    return std::to_string(device % cluster.devices_each);
  };
  if (begin == end)
    return "node " + std::to_string(begin) + " devices " + number(*first) + " to " + number(*last);
  return cluster.name_of(*first) + " to " + cluster.name_of(*last);
}

std::vector<std::string> verdict_words(const plan::RunFacts& facts, const plan::Plan& plan) {
  if (!plan.judged)
    return {"no verdict: how much memory there is was not said; give --host-gb, or --cluster"};
  std::vector<std::string> lines;
  for (const plan::Shortfall& shortfall : plan.shortfalls)
    lines.push_back(shortfall_words(facts, plan, shortfall));
  if (!lines.empty()) return lines;
  const auto fullest =
      std::max_element(plan.loads.begin(), plan.loads.end(),
                       [](const auto& a, const auto& b) { return a.bytes < b.bytes; });
  lines.push_back("fits: the fullest is " + facts.cluster.name_of(fullest->device) + " with " +
                  gigabytes(fullest->bytes) + " GB of " + gigabytes(facts.cluster.device_bytes));
  if (const std::string use = plan::use_of_idle(facts, plan); !use.empty()) {
    lines.push_back(count_of(plan.placement.idle, "device") +
                    (plan.placement.idle == 1 ? " is" : " are") + " idle; " + use +
                    " gives them work");
  }
  return lines;
}

std::vector<std::string> engine_words(const plan::RunFacts& facts) {
  for (const plan::Role& role : facts.roles) {
    const auto* engine = std::get_if<plan::EngineFacts>(&role.facts);
    if (engine == nullptr || engine->at_once == 0) continue;
    return {"keys and values of an engine hold " + count_of(engine->at_once, "sample") +
            " of the longest at once; the longest group needs " +
            gigabytes(engine->keys_bytes_min) + " GB of them"};
  }
  return {};
}

std::vector<std::string> batch_words(const plan::Batch& batch) {
  const plan::BatchFacts& facts = batch.facts;
  std::vector<std::string> lines;
  const std::string what = facts.prompts ? "prompt" : facts.samples == 2 ? "pair" : "row";
  if (facts.prompts) {
    const std::int64_t prompts = facts.steps * facts.groups;
    lines.push_back("an update: " + count_of(prompts, what) + " x " +
                    count_of(facts.samples, "sample") + " = " +
                    count_of(prompts * facts.samples, "sample") + ", learned from in " +
                    count_of(facts.steps * facts.passes, "optimiser step") + " (" +
                    count_of(facts.passes, "pass", "es") + " of " +
                    count_of(facts.steps, "mini-batch", "es") + ")");
  }
  lines.push_back("an optimiser step: " + count_of(facts.groups, what) +
                  (facts.prompts ? " = " + count_of(batch.samples_of_step(), "sample") : "") +
                  ", at most " + grouped(batch.rows) + " rows in " +
                  count_of(batch.micro_batches, "micro-batch", "es") + " of at most " +
                  grouped(facts.rows_max));
  lines.push_back("lanes: " + count_of(batch.rounds, "round") + " of " +
                  count_of(facts.lanes, "lane") + " a step over " + count_of(facts.ranks, "rank") +
                  ", so a rank computes " + grouped(batch.of_rank()) + " of the " +
                  grouped(batch.micro_batches));
  return lines;
}

std::vector<std::string> push_words(const plan::Push& push) {
  if (push.engines == 0) return {};
  return {"a version of the weights is " + gigabytes(push.image) + " GB; " +
          count_of(push.engines, "engine") + " take it after each update, " + grouped(push.remote) +
          " from another node (" + gigabytes(push.image * push.remote) + " GB)"};
}

}  // namespace troupe::app
