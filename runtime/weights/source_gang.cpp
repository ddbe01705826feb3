#include "runtime/weights/source_gang.hpp"

#include <type_traits>

namespace troupe::weights {
namespace {

// Where a rank serves.
struct RankPlace {
  std::uint64_t host = 0;
  SourcePlace at;
};

// How a rank's part went.
struct RankVerdict {
  std::uint32_t failed = 0;
  core::FixedText<508> text;
};

}  // namespace

template <class T>
core::Result<std::vector<T>> SourceGang::gather(const T& own) {
  static_assert(std::is_trivially_copyable_v<T>);
  std::vector<T> all(static_cast<std::size_t>(gang_->size()));
  std::vector<collective::Place> into;
  for (T& one : all)
    into.push_back({&one, sizeof one});
  TROUPE_TRY(gang_->all_gather({&own, sizeof own}, into));
  return all;
}

core::Result<SourceGang> SourceGang::meet(collective::Collectives& gang, const Own& own) {
  SourceGang met(gang);
  RankPlace place{host_number(own.host_id), {}};
  if (own.socket.size() >= sizeof place.at.socket)
    return fail(ErrorCode::kInternal, "the name of a socket of weights is too long");
  place.at.socket = own.socket;
  TROUPE_TRY_ASSIGN(all, met.gather(place));
  std::uint32_t sources = 0;
  for (const RankPlace& one : all)
    if (one.host == all.front().host && sources < kSources_max) ++sources;
  for (const RankPlace& one : all) {
    const auto number = static_cast<std::uint32_t>(met.sockets_.size());
    const bool serves = one.host == all.front().host && number < sources;
    met.shares_.push_back({serves ? number : sources, sources});
    if (serves) met.sockets_.push_back(one.at.socket.text());
  }
  // Others need no secret, and theirs might be sent in the clear.
  met.secret_ = met.leads() ? own.secret : std::string(kSecret_chars, '0');
  for (int rank = 1; rank < gang.size(); ++rank) {
    if (met.shares_[static_cast<std::size_t>(rank)].number >= sources) continue;
    if (met.leads()) TROUPE_TRY(gang.send(rank, {met.secret_.data(), kSecret_chars}));
    if (gang.rank() == rank) TROUPE_TRY(gang.recv(0, {met.secret_.data(), kSecret_chars}));
  }
  return met;
}

core::Result<std::uint32_t> SourceGang::number_of_rank_zero(std::uint32_t own) {
  TROUPE_TRY(gang_->broadcast(0, {&own, sizeof own}));
  return own;
}

core::Result<void> SourceGang::all_well(const core::Result<void>& own) {
  RankVerdict verdict;
  if (!own) {
    verdict.failed = 1;
    verdict.text = own.error().message;
  }
  TROUPE_TRY_ASSIGN(all, gather(verdict));
  TROUPE_TRY(own);
  for (std::size_t rank = 0; rank < all.size(); ++rank) {
    if (all[rank].failed == 0) continue;
    return fail(ErrorCode::kResources,
                "rank " + std::to_string(rank) + ": " + all[rank].text.text());
  }
  return {};
}

core::Result<SnapshotHead> SourceGang::sign(const SnapshotShape& shape,
                                            core::Version version,
                                            std::span<std::uint32_t> table,
                                            const net::SigningKey& key) {
  const auto own_part = [&](const Share& of) {
    std::vector<std::uint32_t> part;
    for (std::uint32_t i = of.number; of.number < of.of && i < shape.buckets; i += of.of)
      part.push_back(table[i]);
    return part;
  };
  std::vector<std::vector<std::uint32_t>> parts;
  for (const Share& of : shares_)
    parts.push_back(own_part(of));
  std::vector<collective::Place> into;
  for (auto& part : parts)
    into.push_back({part.data(), part.size() * sizeof(std::uint32_t)});
  const collective::Place& mine = into[static_cast<std::size_t>(gang_->rank())];
  TROUPE_TRY(gang_->all_gather({mine.at, mine.bytes}, into));
  for (std::size_t rank = 0; rank < parts.size(); ++rank) {
    for (std::size_t i = 0; i < parts[rank].size(); ++i)
      table[shares_[rank].bucket(static_cast<std::uint32_t>(i))] = parts[rank][i];
  }
  SnapshotHead head;
  core::Result<void> signing;
  if (leads()) {
    auto signed_head = make_head(shape, version, table, key);
    if (signed_head) head = *signed_head;
    if (!signed_head) signing = signed_head.failure();
  }
  TROUPE_TRY(all_well(signing));
  TROUPE_TRY(gang_->broadcast(0, {&head, sizeof head}));
  return head;
}

}  // namespace troupe::weights
