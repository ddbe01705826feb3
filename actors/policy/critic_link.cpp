#include "actors/policy/critic_link.hpp"

#include "actors/protocol/ask.hpp"
#include "actors/protocol/limits.hpp"
#include "runtime/experience/row.hpp"

namespace troupe::actors::policy {
namespace {

core::Error from_critic(const core::Error& error, const std::string& peer) {
  core::Error named = error.within(peer);
  if (named.code == ErrorCode::kClosed) named.code = ErrorCode::kPeerLost;
  return named;
}

ScoreValues value_page(std::uint64_t update,
                       const std::vector<experience::Group>& groups,
                       std::size_t cursor) {
  ScoreValues page;
  page.update = update;
  page.cursor = static_cast<std::uint32_t>(cursor);
  std::uint64_t bytes = 0;
  for (; cursor < groups.size(); ++cursor) {
    const experience::Group& group = groups[cursor];
    experience::Group one{group.ticket, group.prompt, {}};
    bytes += 256 + group.prompt.size() * 4;
    for (const experience::Trajectory& sample : group.samples) {
      bytes += 32 + sample.tokens.size() * 4 + experience::turn_bytes(sample);
      experience::Trajectory& row = one.samples.emplace_back();
      row.tokens = sample.tokens;
      row.turns = sample.turns;
    }
    if (!page.groups.empty() && bytes > actors::limits::kPage_bytes) break;
    page.groups.push_back(std::move(one));
  }
  return page;
}

PutReturns returns_page(std::uint64_t update,
                        const learn::ValueTargets& targets,
                        std::size_t cursor) {
  PutReturns page;
  page.update = update;
  page.cursor = static_cast<std::uint32_t>(cursor);
  std::uint64_t bytes = 0;
  for (; cursor < targets.returns.size(); ++cursor) {
    bytes += 256;
    for (const auto& sample : targets.returns[cursor])
      bytes += 32 + sample.size() * 4;
    if (!page.groups.empty() && bytes > actors::limits::kPage_bytes) break;
    page.groups.push_back({targets.returns[cursor]});
  }
  return page;
}

core::Result<void> take_values(CriticValues values,
                               std::vector<experience::Group>& groups,
                               std::size_t cursor,
                               std::size_t count) {
  bool fits = values.groups.size() == count;
  for (std::size_t g = 0; fits && g < count; ++g) {
    auto& samples = groups[cursor + g].samples;
    auto& given = values.groups[g].samples;
    fits = given.size() == samples.size();
    for (std::size_t i = 0; fits && i < samples.size(); ++i) {
      fits = given[i].size() == samples[i].tokens.size();
      samples[i].values = std::move(given[i]);
    }
  }
  if (fits) return {};
  return core::fail(ErrorCode::kData, "the critic's values do not fit the groups it was sent");
}

}  // namespace

async::task<core::Result<void>> fetch_values(RoleContext context,
                                             std::string peer,
                                             std::uint64_t update,
                                             TrainGroups groups) {
  for (std::size_t cursor = 0; cursor < groups->size();) {
    ScoreValues page = value_page(update, *groups, cursor);
    const std::size_t count = page.groups.size();
    auto values = co_await ask(context, peer, std::move(page));
    if (!values) co_return core::fail(from_critic(values.error(), peer));
    TROUPE_CO_TRY(take_values(std::move(*values), *groups, cursor, count));
    cursor += count;
  }
  co_return core::Result<void>();
}

async::task<core::Result<Trained>> train_critic(RoleContext context,
                                                std::string peer,
                                                std::uint64_t update,
                                                learn::ValueTargets targets) {
  const std::size_t groups = targets.returns.size();
  for (std::size_t cursor = 0; cursor < groups;) {
    PutReturns page = returns_page(update, targets, cursor);
    cursor += page.groups.size();
    auto put = co_await ask(context, peer, std::move(page));
    if (!put) co_return core::fail(from_critic(put.error(), peer));
  }
  TrainCritic train{update, static_cast<std::uint32_t>(groups)};
  auto trained = co_await ask(context, peer, train);
  if (!trained) co_return core::fail(from_critic(trained.error(), peer));
  co_return trained;
}

}  // namespace troupe::actors::policy
