#include "runtime/sessions/session_tree.hpp"

#include "runtime/core/check.hpp"
#include "runtime/core/checked_change.hpp"

#include <algorithm>

namespace troupe::sessions {

namespace {

std::size_t common(std::span<const std::int32_t> a, std::span<const std::int32_t> b) {
  const auto end = std::mismatch(a.begin(), a.end(), b.begin(), b.end());
  return static_cast<std::size_t>(end.first - a.begin());
}

}  // namespace

std::optional<SessionTree::Match> SessionTree::find(std::span<const Digest> digests) const {
  for (std::size_t messages = digests.size(); messages-- > 1;) {
    const auto found = by_dialogue_.find(digests[messages]);
    if (found == by_dialogue_.end()) continue;
    for (auto call = found->second.rbegin(); call != found->second.rend(); ++call)
      if (!calls_[*call].dropped) return Match{*call, messages};
  }
  return std::nullopt;
}

SessionTree::Place SessionTree::place(std::span<const std::int32_t> prompt) const {
  struct Shared {
    std::size_t tokens = 0;  // of the prompt
    std::size_t drawn = 0;   // of these
  };
  std::vector<Shared> found(calls_.size());
  Place best;
  std::size_t best_drawn = 0;
  bool best_whole = false;
  for (std::size_t i = 0; i < calls_.size(); ++i) {
    const Call& call = calls_[i];
    if (call.parent) found[i] = found[*call.parent];
    Shared& here = found[i];
    if (here.tokens >= call.shared) {
      here = {call.shared, drawn_before_[i]};
      const std::size_t context = common(call.context, prompt.subspan(here.tokens));
      here.tokens += context;
      if (context == call.context.size()) {
        const std::size_t drawn = common(call.drawn.tokens, prompt.subspan(here.tokens));
        here.tokens += drawn;
        here.drawn += drawn;
      }
    }
    const bool whole = here.tokens == length(i);
    if (call.dropped || here.drawn == 0) continue;
    if (here.drawn < best_drawn || (here.drawn == best_drawn && best_whole && !whole)) continue;
    best = {i, here.tokens};
    best_drawn = here.drawn;
    best_whole = whole;
  }
  return best;
}

std::size_t SessionTree::drawn_within(std::size_t call, std::size_t tokens) const {
  while (tokens <= calls_[call].shared) {
    if (!calls_[call].parent) return 0;
    call = *calls_[call].parent;
  }
  const std::size_t prompt = calls_[call].shared + calls_[call].context.size();
  return drawn_before_[call] + (tokens > prompt ? tokens - prompt : 0);
}

std::size_t SessionTree::add(std::span<const std::int32_t> prompt, const Place& place, Call call) {
  const core::CheckedChange checked(*this);
  TROUPE_CHECK(!place.parent || place.shared <= length(*place.parent), "a place of this tree");
  call.parent = place.parent;
  call.shared = place.parent ? place.shared : 0;
  call.context.assign(prompt.begin() + static_cast<std::ptrdiff_t>(call.shared), prompt.end());
  if (call.parent && call.shared == length(*call.parent)) ++going_on_[*call.parent];
  tokens_ += call.context.size() + call.drawn.tokens.size();
  const std::size_t number = calls_.size();
  if (!call.after.empty()) by_dialogue_[call.after].push_back(number);
  drawn_before_.push_back(call.parent ? drawn_within(*call.parent, call.shared) : 0);
  lengths_.push_back(prompt.size() + call.drawn.tokens.size());
  going_on_.push_back(0);
  calls_.push_back(std::move(call));
  return number;
}

bool SessionTree::drop(std::size_t call) {
  const core::CheckedChange checked(*this);
  Call& one = calls_[call];
  if (one.dropped || going_on_[call] > 0) return false;
  one.dropped = true;
  if (one.parent && one.shared == length(*one.parent)) --going_on_[*one.parent];
  return true;
}

std::vector<std::int32_t> SessionTree::sequence(std::size_t call) const {
  std::vector<std::int32_t> out(length(call));
  std::size_t end = out.size();
  for (std::optional<std::size_t> at = call; at; at = calls_[*at].parent) {
    const Call& one = calls_[*at];
    // What follows `end` belongs to a call below.
    const auto put = [&](const std::vector<std::int32_t>& tokens, std::size_t begin) {
      for (std::size_t i = 0; i < tokens.size() && begin + i < end; ++i)
        out[begin + i] = tokens[i];
    };
    put(one.drawn.tokens, one.shared + one.context.size());
    put(one.context, one.shared);
    end = std::min(end, one.shared);
  }
  return out;
}

std::string SessionTree::check_invariants() const {
  std::vector<std::size_t> going_on(calls_.size());
  std::uint64_t tokens = 0;
  for (std::size_t i = 0; i < calls_.size(); ++i) {
    const Call& call = calls_[i];
    const std::string who = "call " + std::to_string(i);
    if (call.parent && *call.parent >= i) return who + " lies before its parent";
    if (call.shared > (call.parent ? lengths_[*call.parent] : 0))
      return who + " shares more than its parent has";
    const std::size_t drawn = call.drawn.tokens.size();
    if (call.drawn.behaviour.size() != drawn || call.drawn.versions.size() != drawn)
      return who + " has not one log-prob and one version a token";
    if (lengths_[i] != call.shared + call.context.size() + drawn)
      return who + " has another length";
    if (drawn_before_[i] != (call.parent ? drawn_within(*call.parent, call.shared) : 0))
      return who + " shares another number of drawn tokens";
    if (call.parent && !call.dropped && call.shared == lengths_[*call.parent])
      ++going_on[*call.parent];
    tokens += call.context.size() + drawn;
    if (call.after.empty()) continue;
    const auto of = by_dialogue_.find(call.after);
    if (of == by_dialogue_.end() || std::ranges::find(of->second, i) == of->second.end())
      return who + " is not found by its dialogue";
  }
  if (going_on != going_on_) return "calls that go on from others are counted wrongly";
  return tokens == tokens_ ? "" : "tokens are counted wrongly";
}

bool SessionTree::rewarded() const {
  return std::any_of(calls_.begin(), calls_.end(),
                     [](const Call& call) { return !call.dropped && call.reward; });
}

std::vector<std::size_t> SessionTree::leaves() const {
  std::vector<std::size_t> out;
  for (std::size_t i = 0; i < calls_.size(); ++i)
    if (!calls_[i].dropped && going_on_[i] == 0) out.push_back(i);
  return out;
}

}  // namespace troupe::sessions
