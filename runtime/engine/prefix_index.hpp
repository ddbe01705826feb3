// The prefix cache's index: maps full blocks of 16 tokens to the KV blocks that hold their keys and
// values, so that a prompt (or a sample that resumes) need not recompute what is there already. The
// key of an entry is its 16 tokens, the entry before it, and the scope (weights, salt). A lookup
// compares the whole key, not only its hash. A key names the entry before it by a serial number
// that is used only once. So when an entry is erased, its successors are never found again, even if
// the same tokens are entered anew.
//
// The index does not know who holds a block: BlockTables erases an entry before its block is
// written again. Part of BlockTables, on the engine's thread. Bound: one entry per block; no
// allocation after construction.
#pragma once

#include "runtime/engine/group.hpp"

#include <array>
#include <cstdint>
#include <vector>

namespace troupe::engine {

using BlockTokens = std::array<std::int32_t, kBlockTokens>;

class PrefixIndex {
 public:
  // Only entries of the same scope are shared: `weights` counts the engine's weight swaps, `salt`
  // is GroupRequest::cache_salt.
  struct Scope {
    std::uint64_t weights = 0;
    std::uint64_t salt = 0;
    friend bool operator==(const Scope&, const Scope&) = default;
  };
  using Node = BlockEntry;

  // `buckets` of the hash table; 0: about one per block. (Tests use one, so that all keys collide.)
  explicit PrefixIndex(std::int32_t blocks, std::size_t buckets = 0);

  // The entry for `tokens` after `parent`; !found() if there is none.
  Node find(const Scope& scope, const Node& parent, const BlockTokens& tokens) const;
  // Adds an entry for `block`. Neither the block nor the key may have one already.
  Node insert(const Scope& scope,
              const Node& parent,
              const BlockTokens& tokens,
              std::int32_t block);
  // Removes the entry of `block`; false if it has none.
  bool erase(std::int32_t block);
  void clear();

  bool holds(std::int32_t block) const { return at(block).serial != 0; }
  // True for the empty prefix and for an entry that still exists.
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
    std::int32_t next = -1;  // block of the next entry in the bucket, or -1
  };
  const Entry& at(std::int32_t block) const { return entries_[static_cast<std::size_t>(block)]; }
  std::size_t bucket_of(const Scope& scope, std::uint64_t parent, const BlockTokens& tokens) const;

  std::vector<Entry> entries_;         // by block
  std::vector<std::int32_t> buckets_;  // block of the first entry, or -1
  std::uint64_t next_serial_ = 1;
  std::int64_t size_ = 0;
};

}  // namespace troupe::engine
