#include "actors/data/group_scoring.hpp"

#include "actors/data/group_experience.hpp"
#include "actors/data/limits.hpp"
#include "actors/data/sample_scores.hpp"
#include "actors/data/step_places.hpp"
#include "runtime/core/find_value.hpp"
#include "runtime/experience/row.hpp"

#include <algorithm>
#include <cmath>

namespace troupe::actors::data {

namespace {

bool all_finite(const Logprobs& logprobs) {
  for (const auto& sample : logprobs.samples) {
    if (!std::all_of(sample.begin(), sample.end(),
                     [](float value) { return std::isfinite(value); }))
      return false;
  }
  return true;
}

}  // namespace

GroupScoring::GroupScoring(const RoleContext& context,
                           ScoringOptions options,
                           PromptOf prompt_of,
                           async::Notifier& changed)
    : context_(context),
      options_(std::move(options)),
      prompt_of_(std::move(prompt_of)),
      changed_(changed),
      unscored_note_(options_.note, *context_.timers, limits::kNotesEvery) {}

std::vector<GroupScoring::Frozen> GroupScoring::frozen_for(const BookGroup& group) const {
  std::vector<Frozen> needed;
  if (group.ticket.kind() != experience::TicketKind::kTraining) return needed;
  if (options_.with_reference && !group.referenced) {
    needed.push_back({FrozenModel::kReference, options_.reference_peer, "the reference model",
                      limits::kScorerCalls_max});
  }
  if (options_.teachers.empty() || group.taught) return needed;
  const auto prompt = prompt_of_(group);
  if (!prompt || (*prompt)->teacher >= options_.teachers.size()) return needed;
  const TeacherPeer& teacher = options_.teachers[(*prompt)->teacher];
  needed.push_back({FrozenModel::kTeacher, teacher.peer, teacher.name,
                    teacher.server ? limits::kRewardCalls_max : limits::kScorerCalls_max});
  return needed;
}

void GroupScoring::begin(TicketBook& book, const experience::Ticket& ticket) {
  const BookGroup* const group = book.find(ticket);
  if (group == nullptr || group->state != GroupState::kGenerated) return;
  const std::string name = name_of(ticket);
  leave_out_unneeded(book, *group);
  take_feedback(book, *group);
  for (std::size_t member = 0; member < group->scored.size(); ++member) {
    if (book.waits_for(ticket, member))
      context_.scope->spawn("score " + name, score(&book, ticket, member));
  }
  for (const Frozen& frozen : frozen_for(*group))
    context_.scope->spawn(frozen.peer + " " + name, logprobs(&book, ticket, frozen));
}

Scorer& GroupScoring::scorer_of(const std::string& peer,
                                const std::string& name,
                                std::size_t calls_max) {
  return scorers_
      .try_emplace(peer, name, calls_max, options_.patience, *context_.timers, options_.note,
                   changed_)
      .first->second;
}

std::optional<core::Error> GroupScoring::hopeless(
    const std::vector<const BookGroup*>& groups) const {
  for (const BookGroup* group : groups) {
    if (group->state != GroupState::kGenerated) continue;
    std::vector<std::string> awaited;
    for (std::size_t m = 0; m < group->scored.size(); ++m) {
      if (!group->scored[m]) awaited.push_back(group->rewards->members[m].peer);
    }
    for (const Frozen& frozen : frozen_for(*group))
      awaited.push_back(frozen.peer);
    for (const std::string& peer : awaited) {
      const Scorer* const scorer = core::find_value(scorers_, peer);
      if (scorer == nullptr) continue;
      if (auto error = scorer->gone()) return error;
    }
  }
  return std::nullopt;
}

void GroupScoring::tell_unscored(const BookGroup& group) {
  for (const Unscored& unscored : group.unscored) {
    unscored_note_(name_of(group.ticket) + ", sample " + std::to_string(unscored.sample + 1) +
                   " has no score: " + unscored.cause);
  }
}

std::vector<std::vector<experience::StepReward>> GroupScoring::placed(const BookGroup& group,
                                                                      const Scores& scores) const {
  std::vector<std::vector<experience::StepReward>> all;
  const bool any = std::any_of(scores.steps.begin(), scores.steps.end(),
                               [](const auto& steps) { return !steps.empty(); });
  if (!any || !options_.text_ends) return all;
  for (std::size_t i = 0; i < group.samples.size(); ++i) {
    auto& list = all.emplace_back();
    if (i >= scores.steps.size() || scores.steps[i].empty()) continue;
    list = at_tokens(scores.steps[i], options_.text_ends(group.samples[i].tokens));
  }
  return all;
}

// The columns that the formula of the group's set reads, as a JSON object; "" when it reads none.
std::string GroupScoring::row_of_formula(const BookGroup& group) const {
  const core::Result<formula::RewardFormula>& formula = group.rewards->parsed;
  if (!formula || formula->columns().empty()) return {};
  const auto prompt = prompt_of_(group);
  if (!prompt) return {};
  RewardReads reads;
  reads.columns = formula->columns();
  return row_with((*prompt)->columns, reads);
}

// Rewards of other domains than the group's are not asked.
void GroupScoring::leave_out_unneeded(TicketBook& book, const BookGroup& group) {
  if (group.rewards->formula.empty()) return;
  const std::string row = row_of_formula(group);
  if (row.empty()) return;  // without columns every member is needed
  const std::vector<bool> needed = group.rewards->parsed->needed(group.rewards->members, row);
  const std::vector<std::optional<double>> none(group.samples.size());
  const std::vector<std::string> causes(group.samples.size(), kNotAsked);
  for (std::size_t member = 0; member < needed.size(); ++member) {
    if (needed[member] || !book.put_scores({group.ticket, member, none, causes, {}, row})) continue;
    tell_unscored(group);
    changed_.notify_all();
  }
}

// What came with the samples needs no scorer.
void GroupScoring::take_feedback(TicketBook& book, const BookGroup& group) {
  const auto& members = group.rewards->members;
  for (std::size_t member = 0; member < members.size(); ++member) {
    if (members[member].peer != kFeedbackPeer || !book.waits_for(group.ticket, member)) continue;
    GroupScored given = feedback_scores(group, member);
    given.row = row_of_formula(group);
    if (!book.put_scores(std::move(given))) continue;
    tell_unscored(group);
    changed_.notify_all();
  }
}

// What the reward said when it was introduced for this set or a later one. Groups that come while
// it is being introduced wait for the same answer.
async::task<core::Result<RewardReads>> GroupScoring::reads_of(std::string peer,
                                                              std::uint64_t set,
                                                              Scorer* scorer) {
  co_await scorer->introduction.enter();
  const core::AtExit leave([scorer] { scorer->introduction.leave(); });
  if (!scorer->reads || scorer->introduced_for < set) {
    const IntroduceReward request;
    TROUPE_CO_TRY_SET(scorer->reads, co_await ask(context_, peer, request));
    scorer->introduced_for = std::max(scorer->introduced_for, set);
  }
  co_return *scorer->reads;
}

async::task<core::Result<Scores>> GroupScoring::scores_of(TicketBook* book,
                                                          experience::Ticket ticket,
                                                          std::size_t member,
                                                          RewardSetPtr set,
                                                          Scorer* scorer) {
  const std::string& peer = set->members[member].peer;
  Score request;
  TROUPE_CO_TRY_SET(request.sent, co_await reads_of(peer, set->number, scorer));
  if (!book->waits_for(ticket, member))
    co_return core::fail(ErrorCode::kOverloaded, "nothing waits for its scores any more");
  const BookGroup& group = *book->find(ticket);
  TROUPE_CO_TRY_ASSIGN(prompt, prompt_of_(group));
  request.group.prompt = prompt->text;
  request.group.label = prompt->label;
  request.group.columns = row_with(prompt->columns, request.sent);
  if (request.sent.messages) request.group.messages = prompt->messages;
  if (!experience::is_evaluation(ticket.update)) request.group.update = ticket.update;
  for (const experience::Trajectory& sample : group.samples) {
    RewardSample& one = request.group.samples.emplace_back();
    one.response = sample.text;
    if (request.sent.tokens) one.tokens = sample.tokens;
  }
  auto reply = co_await ask(context_, peer, std::move(request));
  co_return reply;
}

async::task<void> GroupScoring::score(TicketBook* book,
                                      experience::Ticket ticket,
                                      std::size_t member) {
  std::function<bool()> wanted = [book, ticket, member] { return book->waits_for(ticket, member); };
  if (!wanted()) co_return;
  const RewardSetPtr set = book->find(ticket)->rewards;
  const std::string name = "reward " + set->members[member].name;
  Scorer& scorer = scorer_of(set->members[member].peer, name, limits::kRewardCalls_max);
  std::function<async::task<core::Result<Scores>>()> call = [=, this, scorer = &scorer] {
    return scores_of(book, ticket, member, set, scorer);
  };
  auto reply = co_await call_patiently(context_.timers, &scorer, std::move(call), wanted);
  if (reply) tell_modules(name, reply->modules);
  if (!wanted()) co_return;
  const BookGroup& group = *book->find(ticket);
  if (!reply) {
    const bool gone = passing(reply.error().code);
    book->fail(ticket, gone ? FailureKind::kRewardGone : FailureKind::kReward,
               name + ": " + reply.error().message);
  } else if (reply->values.size() != group.samples.size()) {
    book->fail(ticket, FailureKind::kReward,
               name + ": it gave " + std::to_string(reply->values.size()) + " answers for " +
                   std::to_string(group.samples.size()) + " samples");
  } else {
    GroupScored given{ticket, member, reply->values, reply->causes, reply->extras};
    given.row = row_of_formula(group);
    given.steps = placed(group, *reply);
    if (book->put_scores(std::move(given))) tell_unscored(*book->find(ticket));
  }
  changed_.notify_all();
}

async::task<core::Result<void>> GroupScoring::logprobs(TicketBook* book,
                                                       experience::Ticket ticket,
                                                       Frozen from) {
  const BookGroup* group = book->find(ticket);
  if (group == nullptr || group->state != GroupState::kGenerated) co_return core::Result<void>();
  TROUPE_CO_TRY_ASSIGN(prompt, prompt_of_(*group));
  ScoreLogprobs request;
  request.prompt = prompt_tokens(*group, *prompt);
  request.temperature = options_.temperature;
  for (const experience::Trajectory& sample : group->samples) {
    const bool all = !experience::has_context(sample);
    experience::Row row;
    if (!all) row = experience::row_of(sample);
    request.responses.push_back(all ? sample.tokens : std::move(row.ids));
    request.targets.push_back(std::move(row.drawn));
  }
  const bool none = std::all_of(request.targets.begin(), request.targets.end(),
                                [](const auto& targets) { return targets.empty(); });
  if (none) request.targets.clear();
  std::function<bool()> wanted = [book, ticket] {
    const BookGroup* waiting = book->find(ticket);
    return waiting != nullptr && waiting->state == GroupState::kGenerated;
  };
  Scorer& scorer = scorer_of(from.peer, from.name, from.calls_max);
  std::function<async::task<core::Result<Logprobs>>()> call = [this, peer = from.peer,
                                                               request = std::move(request)] {
    return ask(context_, peer, request);
  };
  auto reply = co_await call_patiently(context_.timers, &scorer, std::move(call), wanted);
  const FailureKind kind =
      from.model == FrozenModel::kTeacher ? FailureKind::kTeacher : FailureKind::kReference;
  if (!reply) {
    book->fail(ticket, kind, from.name + ": " + reply.error().message);
  } else if (!all_finite(*reply)) {
    book->fail(ticket, kind, from.name + " gave a log-prob that is not a finite number");
  } else if (wanted() && !book->put_logprobs(from.model, ticket, std::move(reply->samples))) {
    book->fail(ticket, kind, from.name + " gave log-probs that do not fit the samples");
  }
  changed_.notify_all();
  co_return core::Result<void>();
}

void GroupScoring::release(const BookGroup& group) {
  for (const RewardMember& member : group.rewards->members) {
    const auto scorer = scorers_.find(member.peer);
    if (scorer != scorers_.end()) scorer->second.release();
  }
}

std::uint64_t GroupScoring::retries() const {
  std::uint64_t sum = 0;
  for (const auto& [peer, scorer] : scorers_)
    sum += scorer.retries;
  return sum;
}

std::uint64_t GroupScoring::away() const {
  std::uint64_t count = 0;
  for (const auto& [peer, scorer] : scorers_)
    count += scorer.away() ? 1 : 0;
  return count;
}

}  // namespace troupe::actors::data
