// Has the groups of the ticket books scored: takes the feedback that came with them, asks each
// reward of a group's set for scores, and the frozen models (the reference, the teacher of the
// prompt's domain) for log-probs, patiently, and puts the answers into the book. Owned by the data
// role, used on its strand; its coroutines are children of the role's scope. Bounds: one call for
// each group and scorer; kRewardCalls_max calls to a reward or a teacher's server and
// kScorerCalls_max to a frozen model at a time; the patience with a scorer that is away.
#pragma once

#include "actors/data/patient_ask.hpp"
#include "actors/data/prompt_source.hpp"
#include "actors/data/rare_note.hpp"
#include "actors/data/ticket_book.hpp"
#include "actors/protocol/messages.hpp"
#include "actors/protocol/messages_rewards.hpp"
#include "actors/protocol/role_shell.hpp"

#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <vector>

namespace troupe::actors::data {

struct TeacherPeer {
  std::string peer;     // the role: "teacher/0"
  std::string name;     // for messages: "the teacher of math"
  bool server = false;  // answers many calls at a time
};

struct ScoringOptions {
  bool with_reference = false;  // training groups need reference log-probs
  std::string reference_peer = "reference/0";
  std::vector<TeacherPeer> teachers;  // training groups need the log-probs of Prompt::teacher
  float temperature = 1;              // at which frozen models score
  Patience patience;                  // how long to wait for scorers that are away
  Note note;                          // tells the user who is away, which samples have no score
  // Takes what files the code of a reward, or of an environment, has loaded (Scores::modules).
  std::function<void(const std::string& who, const std::string& modules)> modules = nullptr;

  FrozenModels frozen() const { return {with_reference, !teachers.empty()}; }
  // For each token of a response, the bytes of text that it and those before it decode to; where
  // the scores of steps belong follows from it. Null: no reward scores steps.
  std::function<std::vector<std::uint32_t>(const std::vector<std::int32_t>& tokens)> text_ends;
};

class GroupScoring {
 public:
  using PromptOf = std::function<core::Result<const Prompt*>(const BookGroup&)>;

  // `changed` is notified when a group has changed or a scorer is gone. All outlive it.
  GroupScoring(const RoleContext& context,
               ScoringOptions options,
               PromptOf prompt_of,
               async::Notifier& changed);

  // Asks for all that a group with samples still waits for.
  void begin(TicketBook& book, const experience::Ticket& ticket);
  // The error of a scorer that these groups wait for and that was away too long; else none.
  std::optional<core::Error> hopeless(const std::vector<const BookGroup*>& groups) const;

  // The group is given up: its rewards' time away begins anew with the next that needs them.
  void release(const BookGroup& group);

  // Hands on what `who` has loaded, if anything.
  void tell_modules(const std::string& who, const std::string& modules) const {
    if (!modules.empty() && options_.modules) options_.modules(who, modules);
  }

  std::uint64_t retries() const;  // calls that were repeated
  std::uint64_t away() const;     // scorers

 private:
  // A frozen model that a group needs.
  struct Frozen {
    FrozenModel model = FrozenModel::kReference;
    std::string peer, name;
    std::size_t calls_max = 0;
  };

  // `name`: as the user knows it.
  Scorer& scorer_of(const std::string& peer, const std::string& name, std::size_t calls_max);
  // The frozen models whose log-probs the group lacks.
  std::vector<Frozen> frozen_for(const BookGroup& group) const;
  void tell_unscored(const BookGroup& group);
  // The steps of each sample at its tokens; empty when the reward scores none.
  std::vector<std::vector<experience::StepReward>> placed(const BookGroup& group,
                                                          const Scores& scores) const;
  void leave_out_unneeded(TicketBook& book, const BookGroup& group);
  void take_feedback(TicketBook& book, const BookGroup& group);
  std::string row_of_formula(const BookGroup& group) const;
  async::task<void> score(TicketBook* book, experience::Ticket ticket, std::size_t member);
  async::task<core::Result<RewardReads>> reads_of(std::string peer,
                                                  std::uint64_t set,
                                                  Scorer* scorer);
  async::task<core::Result<Scores>> scores_of(TicketBook* book,
                                              experience::Ticket ticket,
                                              std::size_t member,
                                              RewardSetPtr set,
                                              Scorer* scorer);
  async::task<core::Result<void>> logprobs(TicketBook* book,
                                           experience::Ticket ticket,
                                           Frozen from);

  RoleContext context_;
  const ScoringOptions options_;
  const PromptOf prompt_of_;
  async::Notifier& changed_;
  std::map<std::string, Scorer> scorers_;  // by role
  RareNote unscored_note_;
};

}  // namespace troupe::actors::data
