#include "runtime/store/run_gaps.hpp"

#include "runtime/store/append_file.hpp"
#include "runtime/store/kept_lines.hpp"
#include "runtime/store/ledger.hpp"

#include <nlohmann/json.hpp>

#include <map>
#include <set>
#include <sstream>

namespace troupe::store {
namespace {

using Steps = std::set<std::uint64_t>;

// The updates up to `step` that are not in `has`.
Steps lacking(const Steps& has, std::optional<std::uint64_t> first, std::uint64_t step) {
  Steps missing;
  const bool unknown = !first && !has.empty();
  const std::uint64_t begin = unknown ? *has.begin() : first.value_or(0) + 1;
  for (std::uint64_t one = begin; one <= step; ++one)
    if (!has.contains(one)) missing.insert(one);
  return missing;
}

void warn(std::vector<std::string>& notes, const Steps& missing, const std::string& file) {
  if (missing.empty()) return;
  notes.push_back("warning: " + updates_text(missing) + (missing.size() == 1 ? " is" : " are") +
                  " missing from " + file +
                  ", which was cut or removed before; the run goes on without");
}

// Groups in the rollouts of a step; nothing when there are none.
std::optional<std::uint64_t> groups_in(const std::filesystem::path& file) {
  const auto text = read_all(file);
  if (!text || text->empty()) return std::nullopt;
  std::set<std::uint64_t> slots;
  std::istringstream in(*text);
  for (std::string line; std::getline(in, line);) {
    const auto sample = nlohmann::json::parse(line, nullptr, false);
    if (sample.is_object() && sample.contains("slot") && sample["slot"].is_number_unsigned())
      slots.insert(sample["slot"].get<std::uint64_t>());
  }
  return slots.size();
}

}  // namespace

core::Result<std::vector<std::string>> gaps_of(const RunFolder& folder,
                                               std::optional<std::uint64_t> first,
                                               std::uint64_t step,
                                               bool groups) {
  std::vector<std::string> notes;
  TROUPE_TRY_ASSIGN(metrics, read_all(folder.metrics_file()));
  Steps has;
  std::istringstream in(metrics);
  for (std::string line; std::getline(in, line);)
    if (const auto one = step_of_metrics(line)) has.insert(*one);
  warn(notes, lacking(has, first, step), "metrics.jsonl");
  if (!groups) return notes;
  TROUPE_TRY_ASSIGN(records, read_ledger(folder.ledger_file()));
  std::map<std::uint64_t, std::uint64_t> count;
  for (const LedgerRecord& record : records)
    ++count[record.step];
  has.clear();
  for (const auto& [one, groups_of_it] : count)
    has.insert(one);
  Steps missing = lacking(has, first, step);
  // The last update may lack some of its records.
  if (!count.empty()) {
    const auto& [last, records_of_it] = *count.rbegin();
    const auto trained = groups_in(folder.rollouts_file(last));
    if (trained && *trained > records_of_it) missing.insert(last);
  }
  warn(notes, missing, "ledger.log");
  has.clear();
  std::error_code error;
  for (std::uint64_t one = first.value_or(0) + 1; one <= step; ++one)
    if (std::filesystem::exists(folder.rollouts_file(one), error)) has.insert(one);
  warn(notes, lacking(has, first, step), "rollouts/");
  return notes;
}

}  // namespace troupe::store
