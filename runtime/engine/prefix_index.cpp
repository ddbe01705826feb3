#include "runtime/engine/prefix_index.hpp"

#include "runtime/core/check.hpp"

#include <algorithm>
#include <bit>

namespace troupe::engine {
namespace {

// Mixes a value into a running hash with the finaliser of splitmix64. Not cryptographic.
std::uint64_t mix(std::uint64_t state, std::uint64_t value) {
  std::uint64_t z = state ^ (value + 0x9e3779b97f4a7c15ull + (state << 6));
  z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9ull;
  z = (z ^ (z >> 27)) * 0x94d049bb133111ebull;
  return z ^ (z >> 31);
}

}  // namespace

PrefixIndex::PrefixIndex(std::int32_t blocks, std::size_t buckets)
    : entries_(static_cast<std::size_t>(blocks)),
      buckets_(buckets > 0 ? buckets : std::bit_ceil(static_cast<std::size_t>(std::max(blocks, 1))),
               -1) {}

std::size_t PrefixIndex::bucket_of(const Scope& scope,
                                   std::uint64_t parent,
                                   const BlockTokens& tokens) const {
  std::uint64_t hash = mix(mix(scope.weights, scope.salt), parent);
  for (const std::int32_t token : tokens)
    hash = mix(hash, static_cast<std::uint64_t>(token));
  return static_cast<std::size_t>(hash % buckets_.size());
}

PrefixIndex::Node PrefixIndex::find(const Scope& scope,
                                    const Node& parent,
                                    const BlockTokens& tokens) const {
  if (size_ == 0 || !alive(parent)) return {};
  std::int32_t block = buckets_[bucket_of(scope, parent.serial, tokens)];
  for (; block >= 0; block = at(block).next) {
    const Entry& entry = at(block);
    if (entry.parent == parent.serial && entry.scope == scope && entry.tokens == tokens) {
      return {block, entry.serial};
    }
  }
  return {};
}

PrefixIndex::Node PrefixIndex::insert(const Scope& scope,
                                      const Node& parent,
                                      const BlockTokens& tokens,
                                      std::int32_t block) {
  TROUPE_CHECK(!holds(block), "a block was entered twice");
  TROUPE_CHECK(alive(parent), "a block was entered after one that is gone");
  const std::size_t bucket = bucket_of(scope, parent.serial, tokens);
  Entry& entry = entries_[static_cast<std::size_t>(block)];
  entry = {next_serial_++,  parent.serial, scope, tokens, static_cast<std::uint32_t>(bucket),
           buckets_[bucket]};
  buckets_[bucket] = block;
  ++size_;
  return {block, entry.serial};
}

bool PrefixIndex::erase(std::int32_t block) {
  Entry& entry = entries_[static_cast<std::size_t>(block)];
  if (entry.serial == 0) return false;
  std::int32_t* link = &buckets_[entry.bucket];
  while (*link != block)
    link = &entries_[static_cast<std::size_t>(*link)].next;
  *link = entry.next;
  entry.serial = 0;
  --size_;
  return true;
}

void PrefixIndex::clear() {
  for (Entry& entry : entries_)
    entry.serial = 0;
  std::fill(buckets_.begin(), buckets_.end(), -1);
  size_ = 0;
}

}  // namespace troupe::engine
