// The calls of one session as a tree. A call's sequence is its prompt and what was drawn for it;
// the call begins with the first `shared` tokens of its parent's sequence. One that has all of them
// goes on from its parent; one that has fewer is a fork. A pure value; one thread. Bound: the
// owner's limits of calls and tokens; memory grows with what is new in each call.
#pragma once

#include "runtime/experience/finish_reason.hpp"
#include "runtime/experience/token_facts.hpp"
#include "runtime/experience/version_runs.hpp"
#include "runtime/sessions/dialogue.hpp"

#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <vector>

namespace troupe::sessions {

// What the engine drew for a call: one entry per token in each list.
struct Drawn {
  std::vector<std::int32_t> tokens;  // at least one
  std::vector<float> behaviour;      // log-probs: full vocabulary, at the temperature
  experience::VersionRuns versions;
  experience::TokenFacts facts{};
  experience::FinishReason finish = experience::FinishReason::kEos;
};

// The text that a template made of the messages of a call, without the opening of the answer.
struct PastText {
  std::size_t bytes = 0;
  std::string sha256;
};

struct Call {
  std::optional<std::size_t> parent;  // an earlier call
  std::size_t shared = 0;             // tokens of the parent's sequence that this one begins with
  std::vector<std::int32_t> context;  // the rest of its prompt
  Drawn drawn;
  Digest after;                  // of the dialogue with the answer; empty: it has no messages
  PastText past;                 // of a call with messages
  std::string text;              // of the response
  std::optional<double> reward;  // of this turn alone
  bool dropped = false;          // its answer did not reach the client, or another took its place
};

class SessionTree {
 public:
  // Where a prompt belongs.
  struct Place {
    std::optional<std::size_t> parent;
    std::size_t shared = 0;
  };
  struct Match {
    std::size_t call = 0;
    std::size_t messages = 0;  // how many of the dialogue's it holds, its answer included
  };

  // The call whose dialogue, with its answer, is the longest beginning of this one. Of several with
  // equal dialogues the last one that was added.
  std::optional<Match> find(std::span<const Digest> digests) const;
  // The call whose sequence shares the most drawn tokens with the beginning of `prompt`; if several
  // do, one that goes on from the whole of a sequence, and the last of those.
  Place place(std::span<const std::int32_t> prompt) const;

  // Adds a call with this prompt, which begins with what `place` shares. Returns its number.
  std::size_t add(std::span<const std::int32_t> prompt, const Place& place, Call call);
  // The call no longer counts: nothing goes on from it, and it is no leaf. Ignored for one that
  // others go on from, because their client has seen it. Returns whether it was dropped.
  bool drop(std::size_t call);

  // What is broken, or "": each call comes after its parent, and what is kept of it next to it (its
  // length, what goes on from it, its dialogue) is so.
  std::string check_invariants() const;

  std::size_t size() const noexcept { return calls_.size(); }
  const Call& at(std::size_t call) const { return calls_[call]; }
  void reward(std::size_t call, double value) { calls_[call].reward = value; }
  bool rewarded() const;  // a call that counts has a reward
  std::size_t length(std::size_t call) const { return lengths_[call]; }  // of its sequence
  std::vector<std::int32_t> sequence(std::size_t call) const;
  // How many of the first `tokens` tokens of its sequence were drawn, by it or by calls above it.
  std::size_t drawn_within(std::size_t call, std::size_t tokens) const;
  // Calls that count and that no other goes on from, in order.
  std::vector<std::size_t> leaves() const;
  // All tokens of contexts and of what was drawn.
  std::uint64_t tokens() const noexcept { return tokens_; }

 private:
  std::vector<Call> calls_;
  std::vector<std::size_t> lengths_;       // of the sequences
  std::vector<std::size_t> drawn_before_;  // drawn tokens of what each shares with its parent
  std::vector<std::size_t> going_on_;      // calls that go on from each, and count
  std::map<Digest, std::vector<std::size_t>> by_dialogue_;
  std::uint64_t tokens_ = 0;
};

}  // namespace troupe::sessions
