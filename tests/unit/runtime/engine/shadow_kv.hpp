// The scheduler without a model: a shadow of the KV memory records, for every slot, which prefix of
// which tokens was written there and under which weights. In each step every position that a slice
// attends to must hold the sample's own prefix, computed by weights that the sample may hold; so a
// wrong share, a missed copy, a stale block or a wrong entry of the prefix index is seen at once.
// Tokens are drawn from what the slots hold: what a sample says depends on its prompt and seed
// alone, or the schedule has changed it.
#pragma once

#include "runtime/core/rng.hpp"
#include "runtime/engine/scheduler.hpp"
#include "tests/unit/runtime/engine/shadow_groups.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <tuple>
#include <utility>
#include <vector>

namespace troupe::engine {

using Event = std::tuple<std::uint64_t, std::int32_t, std::int32_t, std::int32_t, bool>;
using Drawn = std::map<std::pair<std::uint64_t, std::int32_t>, std::vector<std::int32_t>>;

inline constexpr std::uint64_t kShadowVocab = 1000;

class ShadowKv {
 public:
  // `window`: tokens that a row sees, as the scheduler was told; 0: all.
  ShadowKv(Scheduler& scheduler, std::int32_t blocks, std::int32_t budget, std::int32_t window = 0)
      : scheduler_(scheduler),
        slots_(static_cast<std::size_t>(blocks * kBlockTokens)),
        budget_(budget),
        window_(window) {}

  void submit(std::unique_ptr<Group> group) {
    groups_.push_back(group.get());
    scheduler_.submit(std::move(group));
  }
  std::unique_ptr<Group> remove(std::uint64_t id) {
    auto removed = scheduler_.remove({id});
    std::erase(groups_, removed.get());
    return removed;
  }

  // One step: writes all slices, checks what they see, commits, draws; true when there was work.
  bool step(double finish_chance) {
    const auto span = scheduler_.schedule();
    const std::vector<Slice> slices(span.begin(), span.end());
    std::int32_t rows = 0;
    for (const Slice& slice : slices) {
      log_.emplace_back(slice.group->request.id.value, slice.sample, slice.first, slice.count,
                        slice.draws);
      rows += slice.count;
      write(slice);
    }
    computed_ += rows;
    for (const Group* group : groups_)
      note_tables(*group);
    EXPECT_LE(rows, budget_);
    for (const Slice& slice : slices)
      check(slice);
    std::vector<std::tuple<Group*, std::int32_t, std::uint64_t>> draws;
    for (const Slice& slice : slices) {
      if (!slice.draws) continue;
      const SampleState& sample = slice.group->at(slice.sample);
      const std::uint64_t seen = slot(sample, slice.first + slice.count - 1).prefix;
      const bool all = !slice.group->forked;
      for (std::int32_t i = 0; i < slice.group->request.samples; ++i) {
        if (all || i == slice.sample) draws.emplace_back(slice.group, i, seen);
      }
    }
    std::vector<BlockCopy> copies;
    for (const Slice& slice : slices)
      scheduler_.commit(slice, copies);
    for (const BlockCopy& copy : copies) {
      const auto from = slots_.begin() + copy.from * kBlockTokens;
      std::copy_n(from, kBlockTokens, slots_.begin() + copy.to * kBlockTokens);
    }
    for (const auto& [group, index, seen] : draws)
      draw(*group, index, seen, finish_chance);
    sweep();
    return !slices.empty();
  }

  void new_weights(KvAction action) {
    ++weights_;
    for (Group* group : groups_) {
      const bool keeps = action == KvAction::kKeep && group->count(SampleStatus::kRunning) > 0;
      if (!keeps) oldest_.erase(group);
      if (keeps) oldest_.try_emplace(group, weights_ - 1);
    }
    scheduler_.new_weights(action);
  }
  // The memory of the blocks went away and came back empty.
  void lose_memory() {
    scheduler_.release_all();
    scheduler_.forget_cached();
    std::fill(slots_.begin(), slots_.end(), Slot{});
  }

  const std::vector<Event>& log() const { return log_; }
  const Drawn& drawn() const { return drawn_; }
  std::int64_t finished() const { return finished_; }
  std::int64_t computed() const { return computed_; }
  // Blocks of tables that were given back behind the window, and the most that a sample that has
  // forked held at a time.
  std::int64_t given_back() const { return given_back_; }
  std::int32_t most_held() const { return most_held_; }

  // Tables and counts agree; what the index finds for any sample here is that sample's prefix.
  void check_books() const {
    const BlockPool& pool = scheduler_.tables().pool();
    std::vector<std::int32_t> references(static_cast<std::size_t>(pool.total()), 0);
    std::int32_t running = 0;
    for (const Group* group : groups_) {
      for (const SampleState& sample : group->samples) {
        const bool runs = sample.status == SampleStatus::kRunning;
        running += runs ? 1 : 0;
        ASSERT_EQ(runs, !sample.blocks.empty());
        std::int32_t place = 0;
        for (const std::int32_t block : sample.blocks) {
          ASSERT_EQ(block == kGoneBlock, place < sample.behind) << "block " << place;
          ++place;
          if (block != kGoneBlock) ++references[static_cast<std::size_t>(block)];
        }
        check_given_back(*group, sample);
        check_index(*group, sample);
      }
    }
    std::int32_t unused = 0;
    for (std::int32_t block = 0; block < pool.total(); ++block) {
      ASSERT_EQ(pool.references(block), references[static_cast<std::size_t>(block)]) << block;
      unused += pool.references(block) == 0 ? 1 : 0;
    }
    ASSERT_EQ(pool.free_count(), unused);
    ASSERT_EQ(scheduler_.running(), running);
  }

  // What sample `index` must say when it is never disturbed.
  static std::int32_t naive_token(std::uint64_t prefix, std::uint64_t seed) {
    return static_cast<std::int32_t>(core::derive_seed(prefix, seed) % kShadowVocab);
  }
  static std::uint64_t extended(std::uint64_t prefix, std::int32_t token) {
    return core::derive_seed(prefix, static_cast<std::uint64_t>(token));
  }

 private:
  struct Slot {
    std::uint64_t prefix = 0;   // hash of all tokens up to this position
    std::uint64_t weights = 0;  // that computed it
  };

  std::uint64_t prefix_hash(const Group& group,
                            const SampleState& sample,
                            std::int32_t position) const {
    std::uint64_t hash = 0;
    for (std::int32_t p = 0; p <= position; ++p)
      hash = extended(hash, group.token_at(sample, p));
    return hash;
  }
  Slot& slot(const SampleState& sample, std::int32_t position) {
    const auto block = static_cast<std::size_t>(position / kBlockTokens);
    if (block >= sample.blocks.size() || sample.blocks[block] == kGoneBlock) {
      ADD_FAILURE() << "no block for position " << position;
      return nowhere_;
    }
    return slots_[static_cast<std::size_t>(sample.blocks[block] * kBlockTokens +
                                           position % kBlockTokens)];
  }
  void write(const Slice& slice) {
    const SampleState& sample = slice.group->at(slice.sample);
    EXPECT_EQ(sample.status, SampleStatus::kRunning);
    EXPECT_GT(slice.count, 0);
    EXPECT_EQ(slice.draws, slice.first + slice.count == slice.group->length(sample));
    std::uint64_t hash = prefix_hash(*slice.group, sample, slice.first - 1);
    for (std::int32_t p = slice.first; p < slice.first + slice.count; ++p) {
      hash = extended(hash, slice.group->token_at(sample, p));
      slot(sample, p) = {hash, weights_};
    }
  }
  void check(const Slice& slice) {
    const SampleState& sample = slice.group->at(slice.sample);
    const auto kept = oldest_.find(slice.group);
    const std::uint64_t oldest = kept == oldest_.end() ? weights_ : kept->second;
    std::uint64_t hash = 0;
    const std::int32_t seen = window_ > 0 ? std::max(0, slice.first + 1 - window_) : 0;
    for (std::int32_t p = 0; p < slice.first + slice.count; ++p) {
      hash = extended(hash, slice.group->token_at(sample, p));
      if (p < seen) continue;
      ASSERT_EQ(slot(sample, p).prefix, hash) << "group " << slice.group->request.id.value
                                              << " sample " << slice.sample << " position " << p;
      ASSERT_GE(slot(sample, p).weights, oldest) << "computed by weights that are gone";
    }
  }
  // Nothing that no later row sees is still held, once a sample is past its group's prompt.
  void check_given_back(const Group& group, const SampleState& sample) const {
    if (window_ == 0 || !group.forked || sample.status != SampleStatus::kRunning) return;
    if (sample.computed <= group.shared_positions()) return;
    ASSERT_EQ(sample.behind, std::max(0, sample.computed + 1 - window_) / kBlockTokens);
  }
  void note_tables(const Group& group) {
    for (const SampleState& sample : group.samples) {
      if (!group.forked || sample.status != SampleStatus::kRunning) continue;
      given_back_ += sample.behind;
      if (sample.computed <= group.shared_positions()) continue;
      const auto table = static_cast<std::int32_t>(sample.blocks.size());
      most_held_ = std::max(most_held_, table - sample.behind);
    }
  }
  void check_index(const Group& group, const SampleState& sample) const {
    const PrefixIndex& index = scheduler_.tables().index();
    PrefixIndex::Node node;
    std::uint64_t hash = 0;
    for (std::int32_t b = 0; b < group.length(sample) / kBlockTokens; ++b) {
      BlockTokens tokens;
      for (std::int32_t i = 0; i < kBlockTokens; ++i)
        tokens[static_cast<std::size_t>(i)] = group.token_at(sample, b * kBlockTokens + i);
      node = index.find({weights_ - 1, group.request.cache_salt}, node, tokens);
      if (!node.found()) return;
      for (std::int32_t i = 0; i < kBlockTokens; ++i) {
        hash = extended(hash, tokens[static_cast<std::size_t>(i)]);
        const Slot& held = slots_[static_cast<std::size_t>(node.block * kBlockTokens + i)];
        ASSERT_EQ(held.prefix, hash);
        ASSERT_EQ(held.weights, weights_);
      }
    }
  }
  void draw(Group& group, std::int32_t index, std::uint64_t seen, double finish_chance) {
    SampleState& sample = group.at(index);
    sample.out.tokens.push_back(naive_token(seen, sample.seed));
    const bool full = static_cast<std::int32_t>(sample.out.tokens.size()) ==
                      group.request.sampling.max_new_tokens;
    const double chance = core::uniform(sample.seed, 9, sample.out.tokens.size());
    if (!full && chance > finish_chance) return;
    drawn_[{group.request.id.value, index}] = sample.out.tokens;
    scheduler_.finish(group, index);
    ++finished_;
  }
  void sweep() {
    std::erase_if(groups_, [this](Group* group) {
      const bool done = group->count(SampleStatus::kFinished) == group->request.samples;
      if (done || group->count(SampleStatus::kRunning) == 0) oldest_.erase(group);
      return done;
    });
    scheduler_.sweep();
  }

  Scheduler& scheduler_;
  std::vector<Slot> slots_;
  const std::int32_t budget_, window_;
  Slot nowhere_;
  std::uint64_t weights_ = 1;
  std::vector<Group*> groups_;
  std::map<Group*, std::uint64_t> oldest_;  // weights that kept blocks of a group may be of
  std::int64_t finished_ = 0, computed_ = 0, given_back_ = 0;
  std::int32_t most_held_ = 0;
  std::vector<Event> log_;
  Drawn drawn_;
};

}  // namespace troupe::engine
