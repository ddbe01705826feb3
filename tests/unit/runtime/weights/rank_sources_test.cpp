// One image from many sources: the ranks of a trainer each write and serve their share of it, and
// what a receiver has is the image of one version.
#include "tests/unit/runtime/weights/rank_sources.hpp"

#include <gtest/gtest.h>
#include <sys/socket.h>

#include <future>

namespace troupe::weights {
namespace {

using core::ErrorCode;

void expect_both_ways(const model::ModelSpec& spec, std::size_t ranks, bool divided) {
  RankSources sources(spec, ranks, divided);
  RemoteWeightSubscriber subscriber(spec);
  for (core::Version version = 1; version < 5; ++version) {
    const WeightLocation at = sources.publish(version);
    for (const WeightLocation& way : {only_memory(at), only_tcp(at)}) {
      const auto got = receive(subscriber, version, way);
      ASSERT_TRUE(got) << got.error().message;
      EXPECT_TRUE(holds_version(**got, version));
    }
  }
  const SnapshotShape shape(spec, kernels::PanelDtype::kF32);
  std::uint64_t handed_on = 0;
  for (std::size_t rank = 0; rank < ranks; ++rank) {
    const auto counters = sources.of(rank).counters();
    const Share share{static_cast<std::uint32_t>(rank), static_cast<std::uint32_t>(ranks)};
    EXPECT_EQ(counters.server.streamed_bytes, 4 * shape.bytes(share)) << rank;
    EXPECT_EQ(counters.snapshots_made, 2u) << rank;
    handed_on += counters.server.handed_on;
  }
  EXPECT_EQ(handed_on, ranks - 1) << "connections are kept from version to version";
}

TEST(RankSources, BothWaysBringTheSameBits) {
  ASSERT_GT(SnapshotShape(wide(), kernels::PanelDtype::kF32).buckets, 6u);
  for (const std::size_t ranks : {2u, 3u})
    expect_both_ways(wide(), ranks, false);
}

TEST(RankSources, ASourceMayHaveNoBucket) {
  ASSERT_EQ(SnapshotShape(tiny(), kernels::PanelDtype::kF32).buckets, 1u);
  expect_both_ways(tiny(), 3, false);
  expect_both_ways(tiny(), 2, true);
}

TEST(RankSources, DividedWeightsHaveTheSameBits) {
  expect_both_ways(wide(), 3, true);
}

TEST(RankSources, EveryTypeComesFromAll) {
  using kernels::PanelDtype;
  for (const bool divided : {false, true}) {
    RankSources sources(wide(), 2, divided, PanelDtype::kBf16);
    const WeightLocation at = sources.publish(1);
    RemoteWeightSubscriber bf16(wide(), PanelDtype::kBf16), int8(wide(), PanelDtype::kInt8);
    auto waits = std::async(std::launch::async, [&] { return receive(int8, 2, only_tcp(at)); });
    ASSERT_TRUE(comes_true([&] { return sources.of(0).counters().server.queued == 1; }));
    sources.publish(2);
    const auto asked = waits.get();
    ASSERT_TRUE(asked) << asked.error().message;
    EXPECT_TRUE(holds_version(**asked, 2));
    const auto got = receive(bf16, 2, only_memory(at));
    ASSERT_TRUE(got) << got.error().message;
    EXPECT_TRUE(holds_version(**got, 2));
  }
}

TEST(RankSources, AVersionIsGivenUntilItsMemoryIsUsedAgain) {
  RankSources sources(wide(), 2);
  const WeightLocation at = sources.publish(1);
  auto socket = connect_to(at, Wants::kStream);
  const auto ask = [&](core::Version version) {
    Hello hello = hello_with(at, Wants::kStream);
    hello.at_least = version;
    hello.exact = 1;
    hello.source = 1;
    Answer answer;
    EXPECT_TRUE(send_all(socket, &hello, sizeof hello, kPatient, "asking"));
    EXPECT_TRUE(receive_all(socket, &answer, sizeof answer, kPatient, "hearing"));
    return answer;
  };
  sources.publish(2);
  const Answer older = ask(1);
  EXPECT_EQ(older.status, AnswerStatus::kHere);
  EXPECT_EQ(older.version, 1u);
  socket = connect_to(at, Wants::kStream);
  sources.publish(3);
  ASSERT_TRUE(comes_true([&] { return sources.of(1).counters().server.readers == 0; }));
  sources.publish(4);
  const Answer gone = ask(1);
  EXPECT_EQ(gone.status, AnswerStatus::kReplaced);
  EXPECT_EQ(check_answer(gone, 1, "a source").error().code, ErrorCode::kPeerLost);
}

TEST(RankSources, AVersionThatASourceHasNotYetIsWaitedFor) {
  RankSources sources(wide(), 2);
  const WeightLocation at = sources.publish(1);
  auto socket = connect_to(at, Wants::kStream);
  Hello hello = hello_with(at, Wants::kStream);
  hello.at_least = 2;
  hello.exact = 1;
  hello.source = 1;
  ASSERT_TRUE(send_all(socket, &hello, sizeof hello, kPatient, "asking"));
  ASSERT_TRUE(comes_true([&] { return sources.of(1).counters().server.queued == 1; }));
  sources.publish(2);
  Answer answer;
  ASSERT_TRUE(receive_all(socket, &answer, sizeof answer, kPatient, "hearing"));
  EXPECT_EQ(answer.status, AnswerStatus::kHere);
  EXPECT_EQ(answer.version, 2u);
}

TEST(RankSources, MemoryThatOneOfThemTakesBackIsNotUsed) {
  RankSources sources(wide(), 2);
  const WeightLocation at = only_memory(sources.publish(1));
  RemoteWeightSubscriber subscriber(wide()), other(wide());
  auto intake = subscriber.fetch(1, at, kLong);
  ASSERT_TRUE(intake) << intake.error().message;
  core::SerialTeam team;
  ASSERT_TRUE((*intake)->advance(team, core::Duration(0)));
  sources.publish(2);
  const auto held = other.fetch(2, at, kLong);
  ASSERT_TRUE(held) << held.error().message;
  for (core::Version version = 3; version < 5; ++version)
    sources.publish(version);
  EXPECT_GE(sources.of(1).counters().server.taken_back, 1u);
  const auto done = (*intake)->advance(team, kLong);
  ASSERT_FALSE(done);
  EXPECT_EQ(done.error().code, ErrorCode::kPeerLost);
  intake->reset();
  const auto got = receive(subscriber, 1, at);
  ASSERT_TRUE(got) << got.error().message;
  EXPECT_TRUE(holds_version(**got, 4));
}

TEST(RankSources, EveryLeaseCounts) {
  model::ParamStore params(wide());
  write_version(params, 3);
  core::SerialTeam team;
  for (const std::uint32_t taken : {0u, 1u, 2u}) {  // 2: none
    ArrivedImage image;
    image.version = 3;
    image.shape = SnapshotShape(wide(), kernels::PanelDtype::kF32);
    image.table.resize(image.shape.buckets);
    std::vector<net::OwnedFd> publishers;
    for (std::uint32_t number = 0; number < 2; ++number) {
      ImageWriter writer(wide(), kernels::PanelDtype::kF32, core::host_memory(), {number, 2});
      const auto snapshot = *Snapshot::create(writer.shape(), writer.share());
      writer.write(team, params, snapshot->buckets(), image.table);
      int ends[2];
      ASSERT_EQ(::socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends), 0);
      image.parts.push_back({snapshot->buckets(), net::OwnedFd(ends[0]), snapshot});
      publishers.emplace_back(ends[1]);
    }
    ImageIntake intake(std::move(image), std::make_shared<ShadowPool>(wide()));
    ASSERT_TRUE(intake.advance(team, core::Duration(0)));
    if (taken < 2) {
      ASSERT_EQ(::send(publishers[taken].get(), &kTakenBack, 1, 0), 1);
    }
    const auto done = intake.advance(team, kLong);
    EXPECT_EQ(done.has_value(), taken == 2) << taken;
    if (done) {
      EXPECT_TRUE(holds_version(*intake.take(), 3));
    } else {
      EXPECT_EQ(done.error().code, ErrorCode::kPeerLost);
    }
  }
}

TEST(RankSources, WithoutOneOfThemNothingComes) {
  RankSources sources(wide(), 3);
  const WeightLocation at = sources.publish(1);
  RemoteWeightSubscriber subscriber(wide());
  ASSERT_TRUE(receive(subscriber, 1, only_tcp(at)));
  sources.lose(2);
  for (const WeightLocation& way : {only_memory(at), only_tcp(at)}) {
    const auto got = receive(subscriber, 1, way);
    ASSERT_FALSE(got);
    EXPECT_EQ(got.error().code, ErrorCode::kPeerLost) << got.error().message;
  }
}

// A receiver on another host passes on what it has from all, and the sources send one copy for it.
TEST(RankSources, RelaysPassOnWhatCameFromAll) {
  constexpr std::size_t kReceivers = 6;
  RankSources sources(wide(), 3);
  std::vector<std::unique_ptr<RemoteWeightSubscriber>> subscribers;
  RelayOptions relays;
  relays.reach = [](std::uint32_t port) { return "127.0.0.1:" + std::to_string(port); };
  for (std::size_t i = 0; i < kReceivers; ++i) {
    subscribers.push_back(std::make_unique<RemoteWeightSubscriber>(
        wide(), kernels::PanelDtype::kF32, "host " + std::to_string(i), core::host_memory(),
        relays));
  }
  const SnapshotShape shape(wide(), kernels::PanelDtype::kF32);
  for (core::Version version = 1; version < 4; ++version) {
    const WeightLocation at = sources.publish(version);
    std::vector<std::jthread> threads;
    for (const auto& subscriber : subscribers) {
      threads.emplace_back([&] {
        const auto got = receive(*subscriber, version, at);
        ASSERT_TRUE(got) << got.error().message;
        EXPECT_TRUE(holds_version(**got, version));
      });
    }
    threads.clear();
    for (std::uint32_t rank = 0; rank < 3; ++rank) {
      EXPECT_LE(sources.of(rank).counters().server.streamed_bytes,
                version * limits::kWeightCopies_max * shape.bytes({rank, 3}));
    }
  }
  EXPECT_GE(sources.of(0).counters().server.sent_on, 1u);
}

TEST(SourceGang, RanksOfOtherHostsHaveNoShare) {
  ConnectedRanks ranks(4);
  const std::string hosts[] = {"here", "there", "here", "there"};
  const SnapshotShape shape(wide(), kernels::PanelDtype::kF32);
  std::vector<std::vector<std::uint32_t>> tables(4, std::vector<std::uint32_t>(shape.buckets));
  std::vector<SnapshotHead> heads(4);
  ranks.each([&](collective::Collectives& own) {
    const auto rank = static_cast<std::size_t>(own.rank());
    auto gang = SourceGang::meet(
        own, {hosts[rank], "@socket " + std::to_string(rank), std::string(kSecret_chars, 's')});
    ASSERT_TRUE(gang) << gang.error().message;
    EXPECT_EQ(gang->is_source(), hosts[rank] == "here");
    EXPECT_EQ(gang->sockets(), (std::vector<std::string>{"@socket 0", "@socket 2"}));
    EXPECT_EQ(gang->secret() == std::string(kSecret_chars, 's'), gang->is_source());
    for (std::uint32_t i = 0; i < shape.buckets; ++i)
      if (gang->share().has(i)) tables[rank][i] = 100 + i;
    const auto head = gang->sign(shape, 5, tables[rank], tests_key());
    ASSERT_TRUE(head) << head.error().message;
    heads[rank] = *head;
  });
  for (std::size_t rank = 0; rank < 4; ++rank) {
    EXPECT_TRUE(check_table(heads[rank], tables[rank], tests_key().public_key()));
    for (std::uint32_t i = 0; i < shape.buckets; ++i)
      EXPECT_EQ(tables[rank][i], 100 + i);
  }
}

TEST(SourceGang, AnErrorOfOneIsAnErrorOfAll) {
  ConnectedRanks ranks(3);
  ranks.each([&](collective::Collectives& own) {
    auto gang = SourceGang::meet(own, {"here", "@s", std::string(kSecret_chars, 's')});
    ASSERT_TRUE(gang) << gang.error().message;
    core::Result<void> mine;
    if (own.rank() == 1) mine = core::fail(ErrorCode::kResources, "no shared memory");
    const auto all = gang->all_well(mine);
    ASSERT_FALSE(all);
    EXPECT_EQ(all.error().code, ErrorCode::kResources);
    EXPECT_EQ(all.error().message,
              own.rank() == 1 ? "no shared memory" : "rank 1: no shared memory");
    EXPECT_TRUE(gang->all_well({})) << "the gang goes on";
  });
}

}  // namespace
}  // namespace troupe::weights
