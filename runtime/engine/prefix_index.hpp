// Maps token blocks to the KV blocks that hold their keys and values, so that a prompt (or a sample
// that resumes) need not recompute what an earlier one computed. An entry is a full block: 16
// tokens, the entry before it, and the scope (weights, salt) in which all of them were computed. A
// lookup compares all of that; the hash only says where to look. Entries are named by serial
// numbers that are never given twice, so an entry whose predecessor is gone, even if the same
// tokens were entered again, is never found through it.
//
// Knows nothing of who holds a block: the scheduler erases an entry before its block is written
// again. Owned by the scheduler, on the engine's thread. Bound: one entry a block; no allocation
// after construction.
#pragma once

#include "runtime/engine/group.hpp"

#include <array>
#include <cstdint>
#include <vector>

namespace troupe::engine {

using BlockTokens = std::array<std::int32_t, kBlockTokens>;

class PrefixIndex {
 public:
  // What may be shared at all: `weights` counts the engine's swaps, `salt` is the caller's.
  struct Scope {
    std::uint64_t weights = 0;
    std::uint64_t salt = 0;
    friend bool operator==(const Scope&, const Scope&) = default;
  };
  using Node = BlockEntry;

  // `buckets` 0: about one a block. (One bucket makes every lookup collide, for tests.)
  explicit PrefixIndex(std::int32_t blocks, std::size_t buckets = 0);

  // The entry for `tokens` after `parent`; !found() when there is none.
  Node find(const Scope& scope, const Node& parent, const BlockTokens& tokens) const;
  // Enters `block`, which must not have an entry; nor may the same tokens after `parent`.
  Node insert(const Scope& scope,
              const Node& parent,
              const BlockTokens& tokens,
              std::int32_t block);
  // True when the block had an entry.
  bool erase(std::int32_t block);
  void clear();

  bool holds(std::int32_t block) const { return at(block).serial != 0; }
  // The empty prefix, or an entry that is still there.
  bool alive(const Node& node) const {
    return !node.found() || at(node.block).serial == node.serial;
  }
  std::int64_t size() const { return size_; }

 private:
  struct Entry {
    std::uint64_t serial = 0;  // 0 = none
    std::uint64_t parent = 0;  // serial of the entry before; 0 = the first block
    Scope scope;
    BlockTokens tokens{};
    std::uint32_t bucket = 0;
    std::int32_t next = -1;  // block of the next entry of the bucket
  };
  const Entry& at(std::int32_t block) const { return entries_[static_cast<std::size_t>(block)]; }
  std::size_t bucket_of(const Scope& scope, std::uint64_t parent, const BlockTokens& tokens) const;

  std::vector<Entry> entries_;         // by block
  std::vector<std::int32_t> buckets_;  // block of the first entry, or -1
  std::uint64_t next_serial_ = 1;
  std::int64_t size_ = 0;
};

}  // namespace troupe::engine
