// `troupe trace RUN`: the episodes that a run has learned from, from its experience log, as
// training traces in OpenEnv's form, one line each. See docs/agents.md.
#include "actors/data/book_events.hpp"
#include "apps/cli/flags.hpp"
#include "apps/troupe/commands.hpp"
#include "runtime/experience/episodes.hpp"
#include "runtime/sessions/trace.hpp"
#include "runtime/store/step_log.hpp"

#include <cstdio>
#include <filesystem>
#include <map>
#include <set>

namespace troupe::app {
namespace {

namespace fs = std::filesystem;

// The groups of training updates, the newest attempt of each slot that did not fail.
class Episodes {
 public:
  void add(const actors::data::BookEvent& event) {
    if (std::holds_alternative<actors::data::GroupsDropped>(event)) return groups_.clear();
    if (experience::is_evaluation(actors::data::update_of(event))) return;
    if (const auto* const issued = std::get_if<actors::data::TicketIssued>(&event)) {
      groups_.erase(slot_of(issued->saved.ticket));
    } else if (const auto* const taken = std::get_if<actors::data::GroupTaken>(&event)) {
      groups_[slot_of(taken->ticket)] = {*taken, {}};
    } else if (const auto* const failed = std::get_if<actors::data::GroupFailed>(&event)) {
      groups_.erase(slot_of(failed->ticket));
    } else if (const auto* const scored = std::get_if<actors::data::GroupScored>(&event)) {
      const auto group = groups_.find(slot_of(scored->ticket));
      if (group == groups_.end()) return;
      for (std::size_t i = 0; i < scored->scores.size(); ++i)
        if (!scored->scores[i]) group->second.unscored.insert(i);
    }
  }

  // Prints a line for each episode; returns how many there are.
  std::size_t print() const {
    std::size_t lines = 0;
    for (const auto& [slot, group] : groups_) {
      if (group.taken.prompt.empty()) continue;  // samples of single turns
      for (const experience::Episode& one : experience::episodes_of(group.taken.samples)) {
        bool scored = true;
        for (std::size_t i = one.begin; i < one.end; ++i)
          scored = scored && !group.unscored.contains(i);
        if (!scored) continue;
        const std::string name = "update-" + std::to_string(slot.first + 1) + "/prompt-" +
                                 std::to_string(slot.second + 1) + "/episode-" +
                                 std::to_string(group.taken.samples[one.begin].episode);
        const auto trace = sessions::training_trace(
            name, group.taken.prompt,
            std::span(group.taken.samples).subspan(one.begin, one.leaves()));
        std::printf("%s\n", trace.dump().c_str());
        ++lines;
      }
    }
    return lines;
  }

 private:
  using Slot = std::pair<std::uint64_t, std::uint32_t>;  // update and slot
  struct Group {
    actors::data::GroupTaken taken;
    std::set<std::size_t> unscored;  // samples that were dropped
  };
  static Slot slot_of(const experience::Ticket& ticket) { return {ticket.update, ticket.slot}; }
  std::map<Slot, Group> groups_;
};

}  // namespace

Result<void> run_trace(cli::Words words) {
  std::string run;
  std::int64_t step = 0;
  TROUPE_TRY_ASSIGN(
      outcome,
      cli::parse_flags(
          "troupe trace RUN: the episodes of a run as token ids, docs/agents.md",
          {{"--run,run", &run, "folder of the run (its --run.path); may stand alone", true},
           {"--step", &step, "only this update; 0: all that the log holds", false, 0, 1e15}},
          words));
  if (outcome == cli::FlagsOutcome::kHelpShown) return {};
  const fs::path folder = fs::path(run) / "experience";
  if (!fs::exists(folder)) {
    return fail(ErrorCode::kNotFound, "troupe trace: " + run + " holds no experience log",
                "give the folder of a run");
  }
  const store::StepLog log(folder, store::system_disk());
  TROUPE_TRY_ASSIGN(steps, log.steps());
  std::size_t lines = 0;
  for (const std::uint64_t one : steps) {
    if (step > 0 && one != static_cast<std::uint64_t>(step)) continue;
    TROUPE_TRY_ASSIGN(content, log.read(one));
    Episodes episodes;
    for (const std::string& record : content.records) {
      const auto event = actors::data::event_of(record);
      if (event) episodes.add(*event);
    }
    lines += episodes.print();
  }
  if (lines > 0) return {};
  return fail(ErrorCode::kNotFound,
              "troupe trace: the experience log of " + run + " holds no episodes" +
                  (steps.empty() ? "" : ": its samples are single answers, which have no turns"),
              steps.empty()
                  ? "run it with --run.keep_experience true, since a checkpoint otherwise "
                    "takes the place of the log"
                  : "rollouts/ in the run folder has their texts");
}

}  // namespace troupe::app
