#include "actors/critic/critic_role.hpp"

#include <algorithm>

namespace troupe::actors::critic {
namespace {

// What the values of a group are computed from.
bool same_rows(const experience::Group& one, const experience::Group& other) {
  return one.ticket == other.ticket && one.prompt == other.prompt &&
         std::ranges::equal(one.samples, other.samples, [](const auto& a, const auto& b) {
           return a.tokens == b.tokens && a.turns == b.turns;
         });
}

}  // namespace

CriticRole::CriticRole(RoleContext context,
                       std::unique_ptr<learn::CriticTrainer> trainer,
                       std::filesystem::path tokenizer_from,
                       store::Disk& disk)
    : TrainerRole(
          std::move(context), std::move(trainer), "critic", std::move(tokenizer_from), disk),
      held_(std::make_shared<Held>()) {}

core::Result<void> CriticRole::check_page(const char* what,
                                          std::uint64_t update,
                                          std::uint32_t cursor,
                                          std::size_t held) const {
  if (update == held_->update && cursor == held) return {};
  return core::fail(core::ErrorCode::kInvalidArgument,
                    std::string(what) + " of update " + std::to_string(update + 1) +
                        " from group " + std::to_string(cursor) + " on, but the critic holds " +
                        std::to_string(held) + " of update " + std::to_string(held_->update + 1));
}

// The values of these groups, if the critic has computed them all already; else nothing.
std::optional<CriticValues> CriticRole::known_values(const ScoreValues& request) const {
  if (request.update != held_->update) return std::nullopt;
  CriticValues values;
  for (std::size_t g = 0; g < request.groups.size(); ++g) {
    const std::size_t place = request.cursor + g;
    if (place >= held_->groups.size() || !same_rows(held_->groups[place], request.groups[g]))
      return std::nullopt;
    values.groups.push_back({held_->values[place]});
  }
  return values;
}

bool CriticRole::known_returns(const PutReturns& request) const {
  const learn::TokenValues& held = held_->returns;
  return request.update == held_->update && request.cursor + request.groups.size() <= held.size() &&
         std::equal(request.groups.begin(), request.groups.end(), held.begin() + request.cursor,
                    [](const GroupValues& one, const auto& other) { return one.samples == other; });
}

async::task<core::Result<CriticValues>> CriticRole::on(ScoreValues request) {
  const auto turn = co_await turns_.take();
  if (auto known = known_values(request)) co_return std::move(*known);
  TROUPE_CO_TRY_ASSIGN(trained, answered(request.update));
  if (trained) {
    co_return core::fail(
        core::ErrorCode::kInvalidArgument,
        "the critic has learned from update " + std::to_string(request.update + 1) + " already");
  }
  if (request.cursor == 0) {
    held_ = std::make_shared<Held>();
    held_->update = request.update;
  } else if (request.update == held_->update && request.cursor < held_->groups.size()) {
    held_->groups.resize(request.cursor);
    held_->values.resize(request.cursor);
    held_->returns.clear();
  }
  TROUPE_CO_TRY(check_page("groups", request.update, request.cursor, held_->groups.size()));
  auto held = held_;
  auto page = std::make_shared<std::vector<experience::Group>>(std::move(request.groups));
  auto job = [trainer = trainer_, page]() { return trainer->values(*page); };
  TROUPE_CO_TRY_ASSIGN(values, co_await work_.run("value", std::move(job)));
  CriticValues reply;
  for (std::size_t g = 0; g < page->size(); ++g) {
    reply.groups.push_back({values[g]});
    held->groups.push_back(std::move((*page)[g]));
    held->values.push_back(std::move(values[g]));
  }
  co_return reply;
}

async::task<core::Result<Ack>> CriticRole::on(PutReturns request) {
  TROUPE_CO_TRY_ASSIGN(trained, answered(request.update));
  if (trained || known_returns(request)) co_return Ack{};
  if (request.update == held_->update && request.cursor < held_->returns.size())
    held_->returns.resize(request.cursor);
  TROUPE_CO_TRY(check_page("returns", request.update, request.cursor, held_->returns.size()));
  for (GroupValues& group : request.groups)
    held_->returns.push_back(std::move(group.samples));
  co_return Ack{};
}

async::task<core::Result<Trained>> CriticRole::on(TrainCritic request) {
  const auto turn = co_await turns_.take();
  TROUPE_CO_TRY_ASSIGN(known, answered(request.update));
  if (known) co_return *known;
  TROUPE_CO_TRY(check_whole());
  TROUPE_CO_TRY(check_page("training", request.update, request.groups, held_->groups.size()));
  auto held = std::move(held_);
  held_ = std::make_shared<Held>();
  begin_update(request.update);
  auto job = [trainer = trainer_, held]() {
    return trainer->update(held->groups, held->values, held->returns);
  };
  TROUPE_CO_TRY_ASSIGN(report, co_await work_.run("train", std::move(job)));
  co_return learned(request.update, std::move(report));
}

}  // namespace troupe::actors::critic
