#include "runtime/sessions/episode_rows.hpp"

#include <algorithm>
#include <iterator>

namespace troupe::sessions {
namespace {

using experience::Trajectory;
using experience::Turn;

// One call on the way to a leaf, and how many tokens of its sequence the way takes.
struct Link {
  std::size_t call = 0;
  std::size_t tokens = 0;
};

std::vector<Link> way_to(const SessionTree& tree, std::size_t leaf) {
  std::vector<Link> way = {{leaf, tree.length(leaf)}};
  while (const auto parent = tree.at(way.back().call).parent)
    way.push_back({*parent, std::min(tree.at(way.back().call).shared, way.back().tokens)});
  std::reverse(way.begin(), way.end());
  return way;
}

// Drawn tokens of a call that lie within the first `tokens` of its sequence.
std::size_t drawn_of(const SessionTree& tree, const Link& link) {
  const Call& call = tree.at(link.call);
  const std::size_t prompt = call.shared + call.context.size();
  return link.tokens > prompt ? link.tokens - prompt : 0;
}

void draw(const Drawn& from, std::size_t begin, std::size_t end, Trajectory& to) {
  const auto part = [&](const auto& list) {
    return std::pair(list.begin() + static_cast<std::ptrdiff_t>(begin),
                     list.begin() + static_cast<std::ptrdiff_t>(end));
  };
  append(to.facts, to.tokens.size(), from.facts, begin, end);
  const auto [tokens, tokens_end] = part(from.tokens);
  to.tokens.insert(to.tokens.end(), tokens, tokens_end);
  const auto [logprobs, logprobs_end] = part(from.behaviour);
  to.behaviour.insert(to.behaviour.end(), logprobs, logprobs_end);
  std::size_t at = 0;
  for (const auto& run : from.versions.runs()) {
    const std::size_t run_end = at + run.count;
    const std::size_t low = std::max(at, begin), high = std::min(run_end, end);
    if (low < high) to.versions.add(run.version, high - low);
    at = run_end;
  }
}

// Drawn tokens with which both ways begin.
std::size_t shared_by(const SessionTree& tree,
                      const std::vector<Link>& a,
                      const std::vector<Link>& b) {
  std::size_t drawn = 0;
  for (std::size_t i = 0; i < std::min(a.size(), b.size()) && a[i].call == b[i].call; ++i) {
    const std::size_t of_a = drawn_of(tree, a[i]), of_b = drawn_of(tree, b[i]);
    drawn += std::min(of_a, of_b);
    if (of_a != of_b) break;
  }
  return drawn;
}

// Makes the sample of a leaf. `shared`: drawn tokens of its path that an earlier sample has drawn.
Trajectory sample_of(const SessionTree& tree,
                     const std::vector<Link>& way,
                     std::size_t shared,
                     const EpisodeRewards& rewards) {
  Trajectory out;
  const std::vector<std::int32_t> ids = tree.sequence(way.back().call);
  std::size_t on_path = 0;  // drawn tokens so far
  std::size_t taken = 0;    // of the ids
  double turns = 0;
  for (const Link& link : way) {
    const Call& call = tree.at(link.call);
    const std::size_t drawn = drawn_of(tree, link);
    if (drawn == 0) continue;
    const bool whole = drawn == call.drawn.tokens.size();
    if (whole) turns += call.reward.value_or(0);
    const std::size_t skipped = std::min(drawn, shared - std::min(shared, on_path));
    on_path += drawn;
    if (skipped == drawn) continue;
    const std::size_t begin = call.shared + call.context.size() + skipped;
    Turn turn{static_cast<std::uint32_t>(out.tokens.size()), {}};
    turn.context.assign(ids.begin() + static_cast<std::ptrdiff_t>(taken),
                        ids.begin() + static_cast<std::ptrdiff_t>(begin));
    out.turns.push_back(std::move(turn));
    draw(call.drawn, skipped, drawn, out);
    taken = begin + drawn - skipped;
    if (whole && rewards.by_turn && call.reward)
      out.feedback_steps.push_back(
          {static_cast<std::uint32_t>(out.tokens.size() - 1), *call.reward});
  }
  const Call& last = tree.at(way.back().call);
  out.finish = last.drawn.finish;
  out.text = last.text;
  out.feedback = rewards.score;
  if (!out.feedback && tree.rewarded()) out.feedback = rewards.by_turn ? 0 : turns;
  return out;
}

}  // namespace

std::vector<Trajectory> samples_of(const SessionTree& tree,
                                   std::uint32_t episode,
                                   std::size_t first,
                                   const EpisodeRewards& rewards) {
  std::vector<Trajectory> out;
  std::vector<std::vector<Link>> ways;
  for (const std::size_t leaf : tree.leaves()) {
    const std::vector<Link>& way = ways.emplace_back(way_to(tree, leaf));
    experience::Shares shares;
    for (std::size_t i = 0; i + 1 < ways.size(); ++i) {
      const std::size_t drawn = shared_by(tree, ways[i], way);
      if (drawn <= shares.tokens) continue;
      shares = {static_cast<std::uint32_t>(first + i), static_cast<std::uint32_t>(drawn)};
    }
    Trajectory& sample = out.emplace_back(sample_of(tree, way, shares.tokens, rewards));
    sample.episode = episode;
    if (shares.tokens > 0) sample.shares = shares;
  }
  return out;
}

core::Result<std::vector<std::int32_t>> take_prompt(std::vector<Trajectory>& samples) {
  std::vector<std::int32_t> prompt;
  for (std::size_t i = 0; i < samples.size(); ++i) {
    const std::vector<std::int32_t>& beginning = samples[i].turns.front().context;
    if (i == 0) prompt = beginning;
    const auto end =
        std::mismatch(prompt.begin(), prompt.end(), beginning.begin(), beginning.end());
    prompt.erase(end.first, prompt.end());
  }
  if (prompt.empty()) {
    return core::fail(core::ErrorCode::kData,
                      "the prompts of the group's episodes begin with different tokens");
  }
  for (Trajectory& sample : samples) {
    std::vector<std::int32_t>& beginning = sample.turns.front().context;
    beginning.erase(beginning.begin(),
                    beginning.begin() + static_cast<std::ptrdiff_t>(prompt.size()));
    if (sample.turns.size() == 1 && beginning.empty()) sample.turns.clear();
  }
  return prompt;
}

}  // namespace troupe::sessions
