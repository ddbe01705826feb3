#include "runtime/learn/rl/micro_batch.hpp"

#include "runtime/experience/episodes.hpp"
#include "runtime/experience/row.hpp"
#include "runtime/learn/advantage/update_advantages.hpp"
#include "runtime/learn/lanes/even_cut.hpp"

#include <algorithm>
#include <span>
#include <string>

namespace troupe::learn {
namespace {

std::int64_t part_tokens(const experience::Group& group, std::size_t begin, std::size_t end) {
  std::int64_t tokens = 0;
  for (std::size_t i = begin; i < end; ++i) {
    tokens += static_cast<std::int64_t>(group.samples[i].tokens.size());
  }
  return tokens;
}

core::Result<void> check_group(const experience::Group& group, std::int64_t rows_max) {
  const std::string name = "group of " + experience::name_of(group.ticket);
  if (group.prompt.empty()) {
    return core::fail(ErrorCode::kInvalidArgument, name + " has an empty prompt");
  }
  if (group.samples.empty()) {
    return core::fail(ErrorCode::kInvalidArgument, name + " has no samples");
  }
  for (std::size_t i = 0; i < group.samples.size(); ++i) {
    if (group.samples[i].tokens.empty()) {
      return core::fail(ErrorCode::kInvalidArgument,
                        "sample " + std::to_string(i) + " in the " + name + " has no tokens");
    }
    const std::int64_t rows = part_rows(group, i, i + 1);
    if (rows > rows_max) {
      return core::fail(ErrorCode::kConfig,
                        "sample " + std::to_string(i) + " in the " + name + " needs " +
                            std::to_string(rows) + " rows with its prompt, a micro-batch holds " +
                            std::to_string(rows_max),
                        "raise --train.micro_tokens_max or shorten the responses");
    }
  }
  return {};
}

// Checks every group and returns the groups' indices in ticket order.
core::Result<std::vector<std::size_t>> ticket_order(const std::vector<experience::Group>& groups,
                                                    std::int64_t rows_max) {
  std::vector<std::size_t> order = by_ticket(groups);
  for (std::size_t i = 0; i < order.size(); ++i) {
    const experience::Group& group = groups[order[i]];
    TROUPE_TRY(check_group(group, rows_max));
    if (i == 0) continue;
    const experience::Ticket& before = groups[order[i - 1]].ticket;
    if (before.update == group.ticket.update && before.slot == group.ticket.slot) {
      return core::fail(ErrorCode::kInvalidArgument,
                        "two groups of " + experience::name_of(group.ticket) + " in one update");
    }
  }
  return order;
}

void append_part(MicroBatch& micro, const GroupPart& part, const experience::Group& group) {
  micro.parts.push_back(part);
  micro.rows += part_rows(group, part.sample_begin, part.sample_end);
  micro.tokens += part_tokens(group, part.sample_begin, part.sample_end);
}

// Cuts one mini-batch, whose groups `run` lists, into micro-batches of at most `rows_max` rows, and
// fills these one after the other. Groups that learn come first.
MiniBatch cut(const std::vector<experience::Group>& groups,
              std::span<const std::size_t> run,
              const std::vector<bool>& learns,
              std::int64_t rows_max) {
  MiniBatch mini;
  auto& filled = mini.micro_batches;
  const auto add = [&](const GroupPart& part, bool learning) {
    const experience::Group& group = groups[part.group];
    const std::int64_t rows = part_rows(group, part.sample_begin, part.sample_end);
    if (filled.empty() || filled.back().learns != learning ||
        filled.back().rows + rows > rows_max) {
      filled.emplace_back().learns = learning;
    }
    append_part(filled.back(), part, group);
    mini.tokens += part_tokens(group, part.sample_begin, part.sample_end);
  };
  for (const bool learning : {true, false}) {
    for (const std::size_t index : run) {
      if ((learns.empty() || learns[index]) != learning) continue;
      const experience::Group& group = groups[index];
      const std::size_t samples = group.samples.size();
      // Takes as many samples at a time as an empty micro-batch holds, mostly all of the group.
      for (std::size_t begin = 0, end = 0; begin < samples; begin = end) {
        end = begin + 1;
        while (end < samples && part_rows(group, begin, end + 1) <= rows_max)
          ++end;
        add({index, begin, end}, learning);
      }
    }
  }
  return mini;
}

// As many micro-batches as `cut` makes, but of sizes as equal as whole groups allow, because the
// largest one sets the memory. If a group does not fit into a micro-batch, the result of `cut`.
MiniBatch cut_evenly(const std::vector<experience::Group>& groups,
                     std::span<const std::size_t> run,
                     const std::vector<bool>& learns,
                     std::int64_t rows_max) {
  MiniBatch best = cut(groups, run, learns, rows_max);
  std::int64_t low = 1, high = rows_max;
  for (const std::size_t index : run)
    low = std::max(low, part_rows(groups[index], 0, groups[index].samples.size()));
  if (low > rows_max || best.micro_batches.size() < 2) return best;
  while (low < high) {
    const std::int64_t middle = low + (high - low) / 2;
    MiniBatch tighter = cut(groups, run, learns, middle);
    if (tighter.micro_batches.size() > best.micro_batches.size()) {
      low = middle + 1;
    } else {
      high = middle;
      best = std::move(tighter);
    }
  }
  return best;
}

// Groups, or samples of groups, in order, and the rows of runs of them.
class Units {
 public:
  // `split`: each sample is a unit; else only those of groups that are larger than `rows_max`.
  Units(const std::vector<experience::Group>& groups,
        const std::vector<std::size_t>& chosen,
        std::int64_t rows_max,
        bool split)
      : groups_(&groups) {
    for (const std::size_t index : chosen) {
      const std::size_t samples = groups[index].samples.size();
      const bool whole = !split && part_rows(groups[index], 0, samples) <= rows_max;
      for (std::size_t i = 0; i < samples; i += whole ? samples : 1)
        add({index, i, whole ? samples : i + 1});
    }
  }

  std::size_t size() const { return parts_.size(); }
  // Samples of one group share its prompt.
  std::int64_t rows(UnitRun run) const {
    return alone_[run.begin] + added_[run.end] - added_[run.begin + 1];
  }
  MicroBatch micro_batch(UnitRun run, bool learns) const {
    MicroBatch micro;
    micro.learns = learns;
    for (std::size_t i = run.begin; i < run.end;) {
      GroupPart part = parts_[i];
      for (++i; i < run.end && parts_[i].group == part.group; ++i)
        part.sample_end = parts_[i].sample_end;
      append_part(micro, part, (*groups_)[part.group]);
    }
    return micro;
  }

 private:
  void add(const GroupPart& part) {
    const experience::Group& group = (*groups_)[part.group];
    const std::int64_t rows = part_rows(group, part.sample_begin, part.sample_end);
    const auto prompt = static_cast<std::int64_t>(group.prompt.size());
    alone_.push_back(rows);
    added_.push_back(added_.back() + rows - (part.sample_begin > 0 ? prompt : 0));
    parts_.push_back(part);
  }

  const std::vector<experience::Group>* groups_;
  std::vector<GroupPart> parts_;
  std::vector<std::int64_t> alone_;        // rows of a unit with its prompt
  std::vector<std::int64_t> added_ = {0};  // running sums of what each unit adds
};

// The micro-batches of a mini-batch with several lanes: a multiple of their number, those that
// learn first.
MiniBatch cut_for_lanes(const std::vector<experience::Group>& groups,
                        std::span<const std::size_t> run,
                        const std::vector<bool>& learns,
                        std::int64_t rows_max,
                        const Dealing& dealing) {
  MiniBatch mini;
  for (const bool learning : {true, false}) {
    std::vector<std::size_t> chosen;
    for (const std::size_t index : run) {
      if ((learns.empty() || learns[index]) == learning) chosen.push_back(index);
    }
    const auto wanted = [&](const Units& units) {
      const auto cost = [&](UnitRun some) { return units.rows(some); };
      return whole_rounds(fewest_runs(units.size(), cost, rows_max), dealing.lanes);
    };
    Units units(groups, chosen, rows_max, false);
    if (units.size() < wanted(units) && !dealing.whole_groups)
      units = Units(groups, chosen, rows_max, true);
    const auto cost = [&](UnitRun some) { return units.rows(some); };
    for (const UnitRun& some : even_cut(units.size(), cost, wanted(units))) {
      mini.micro_batches.push_back(units.micro_batch(some, learning));
      mini.tokens += mini.micro_batches.back().tokens;
    }
  }
  return mini;
}

}  // namespace

std::int64_t part_rows(const experience::Group& group, std::size_t begin, std::size_t end) {
  auto rows = static_cast<std::int64_t>(group.prompt.size());
  for (std::size_t i = begin; i < end; ++i)
    rows += static_cast<std::int64_t>(experience::row_length(group.samples[i])) - 1;
  return rows;
}

core::Result<UpdatePlan> plan_update(const std::vector<experience::Group>& groups,
                                     const BatchSettings& batch,
                                     const std::vector<bool>& learns,
                                     const Dealing& dealing) {
  if (groups.empty()) return core::fail(ErrorCode::kInvalidArgument, "the update has no groups");
  TROUPE_TRY_ASSIGN(order, ticket_order(groups, batch.micro_tokens_max));
  const std::size_t count = groups.size();
  const std::size_t runs =
      std::min(count, static_cast<std::size_t>(std::max<std::int64_t>(batch.mini_batches, 1)));
  UpdatePlan plan;
  for (std::size_t run = 0; run < runs; ++run) {
    const std::size_t first = count * run / runs, end = count * (run + 1) / runs;
    const auto own = std::span(order).subspan(first, end - first);
    plan.mini_batches.push_back(
        dealing.lanes == 1 ? cut_evenly(groups, own, learns, batch.micro_tokens_max)
                           : cut_for_lanes(groups, own, learns, batch.micro_tokens_max, dealing));
    const MiniBatch& mini = plan.mini_batches.back();
    plan.tokens += mini.tokens;
    plan.micro_batches += static_cast<std::int64_t>(mini.micro_batches.size());
    for (const MicroBatch& micro : mini.micro_batches)
      plan.rows += micro.rows;
  }
  for (const experience::Group& group : groups)
    plan.samples += std::ssize(experience::episodes_of(group.samples));
  return plan;
}

}  // namespace troupe::learn
