// Gangs that get no link: each says why in one line, on every rank the same, and its devices' bytes
// go by way of the host. And how links are made.
#include "runtime/collective/link_facts.hpp"
#include "tests/unit/runtime/collective/device_gang.hpp"
#include "tests/unit/runtime/collective/sequence.hpp"

#include <thread>

namespace troupe::collective::test {
namespace {

struct Fallback {
  std::string name, why;
  Setting setting;
};

Setting mode_of_rank(int which, const std::string& modes) {
  Setting setting;
  setting.modes = [=](int rank) { return rank == which ? modes : ""; };
  return setting;
}
Setting library_of_rank(int which, const std::string& file) {
  Setting setting;
  setting.before = [=](int rank) {
    if (rank == which) set_variable("TROUPE_NCCL_LIBRARY", file);
  };
  return setting;
}

std::vector<Fallback> fallbacks() {
  Setting one_device;
  one_device.device = [](int rank) { return rank == 2 ? 0 : rank; };
  const std::string nccl = "NCCL 2.28.9, ";
  const std::string system = ": unhandled system error (emulated)";
  return {
      {"none",
       "rank 1: the NCCL that TROUPE_NCCL_LIBRARY names cannot be loaded: /nowhere/nccl.so: "
       "cannot open shared object file: No such file or directory",
       library_of_rank(1, "/nowhere/nccl.so")},
      {"another library",
       "rank 2: the library that was found is not NCCL: it has no working "
       "ncclGetVersion",
       library_of_rank(2, built("libtroupe_cuda_emulated.so"))},
      {"too old", "rank 1: NCCL 2.16.5 is too old; 2.17.0 or newer is needed",
       mode_of_rank(1, "version:21605")},
      {"versions", "rank 0 has NCCL 2.28.9, rank 2 NCCL 2.27.7", mode_of_rank(2, "version:22707")},
      {"no id", "rank 0: " + nccl + "making an id" + system, mode_of_rank(0, "no-id")},
      {"refused", "rank 1: " + nccl + "connecting the devices" + system, mode_of_rank(1, "refuse")},
      {"failed", "rank 2: " + nccl + "connecting the devices" + system, mode_of_rank(2, "fail")},
      {"one device", "ranks 0 and 2 are both on cuda:00000000000000000000000000000000", one_device},
  };
}

TEST(NcclFallback, SaysWhyInOneLineAndGoesByWayOfTheHost) {
  for (const Fallback& one : fallbacks()) {
    DeviceGang gang(
        3,
        [](Collectives& ranks, Device& device, const Line& line) -> core::Result<void> {
          for (const std::string& text : g_logged)
            line.say(text);
          Sequence sequence(ranks, 3, 5000, device.memory());
          for (int i = 0; i < 10; ++i)
            TROUPE_TRY(sequence.step());
          line.say(ranks.link_name() + std::to_string(sequence.wrong()) + " wrong, " +
                   std::to_string(emulator_says<std::uint64_t>("moved")) + " moved, " +
                   std::to_string(emulator_says<int>("open")) + " open");
          return {};
        },
        one.setting);
    SCOPED_TRACE(one.name);
    gang.expect_all("the devices of policy have no link (" + one.why +
                    "); their bytes go by way of the host");
    gang.expect_all("0 wrong, 0 moved, 0 open");
    gang.expect_all("well");
  }
}

// A rank on a processor beside ranks on devices.
TEST(NcclFallback, OneRankWithoutADeviceIsEnough) {
  Gang gang(2, Ways::kWindow, [](Collectives& ranks, const Line& line) -> core::Result<void> {
    using Made = core::Result<std::unique_ptr<DeviceLink>>;
    TROUPE_TRY(ranks.use(Made(core::fail(core::ErrorCode::kResources, "it is on a processor"))));
    line.say(g_logged.at(0));
    return {};
  });
  for (const int rank : {0, 1})
    EXPECT_EQ(gang.hear(rank),
              "the devices of policy have no link (rank 0: it is on a processor); their bytes go "
              "by way of the host");
}

// ---- facts, by hand ----

std::vector<LinkFacts> two_ranks() {
  std::vector<LinkFacts> all(2);
  for (std::size_t rank = 0; rank < 2; ++rank) {
    all[rank].name = FixedText("NCCL 2.28.9");
    all[rank].device = FixedText("cuda:" + std::to_string(rank));
    all[rank].host = FixedText("here");
  }
  return all;
}

TEST(LinkFacts, HostsNeedATrustedNetworkBetweenThem) {
  std::vector<LinkFacts> all = two_ranks();
  EXPECT_EQ(obstacle_to_link(all), "");
  all[1].host = FixedText("there");
  all[0].trusts = true;
  EXPECT_EQ(obstacle_to_link(all),
            "the ranks are on several hosts, and rank 1 has no address on a trusted network");
  all[1].trusts = true;
  EXPECT_EQ(obstacle_to_link(all), "");
}

TEST(LinkFacts, DevicesOfTwoHostsMayHaveOneName) {
  std::vector<LinkFacts> all = two_ranks();
  all[1].device = all[0].device;
  EXPECT_EQ(obstacle_to_link(all), "ranks 0 and 1 are both on cuda:0");
  all[1].host = FixedText("there");
  all[0].trusts = all[1].trusts = true;
  EXPECT_EQ(obstacle_to_link(all), "");
}

TEST(LinkFacts, InterfacesAreThatOfTheHostOrOfTheTrustedAddress) {
  std::vector<LinkFacts> all = two_ranks();
  RankOptions options;
  options.tcp_host = "127.0.0.1";
  EXPECT_EQ(interface_for_link(options, all), "=lo");
  all[1].host = FixedText("there");
  EXPECT_EQ(interface_for_link(options, all), "=lo");  // the interface of 127.0.0.1
  options.tcp_host = "192.0.2.1";                      // that nobody has
  EXPECT_EQ(interface_for_link(options, all), "");
}

TEST(LinkFacts, TheFirstThatFailedByItselfIsNamed) {
  std::vector<LinkOutcome> all(3);
  EXPECT_EQ(first_failure(all), "");
  all[0].heard = all[1].heard = true;
  all[0].why_not = all[1].why_not = FixedText("another rank failed");
  EXPECT_EQ(first_failure(all), "rank 0: another rank failed");
  all[2].why_not = FixedText("no room");
  EXPECT_EQ(first_failure(all), "rank 2: no room");
}

TEST(LinkFacts, LongWordsAreCut) {
  EXPECT_EQ(FixedText(std::string(1000, 'x')).text(), std::string(255, 'x'));
}

// What the user says about interfaces counts.
TEST(NcclFallback, TheInterfaceOfTheUserIsKept) {
  for (const std::string& user : {std::string(), std::string("eth7")}) {
    Setting setting;
    setting.before = [&](int) {
      if (!user.empty()) set_variable("NCCL_SOCKET_IFNAME", user);
    };
    DeviceGang gang(
        2,
        [](Collectives&, Device&, const Line& line) -> core::Result<void> {
          line.say(std::getenv("NCCL_SOCKET_IFNAME"));
          return {};
        },
        setting);
    gang.expect_all(user.empty() ? "=lo" : user);
  }
}

// A process that has worked with another device before: the communicator is for the link's.
TEST(NcclForming, IsForTheDeviceOfTheLink) {
  const troupe::test::TempFolder folder;
  Gang gang(2, Ways::kWindow, [&](Collectives& ranks, const Line& line) -> core::Result<void> {
    use_emulators(folder.path());
    TROUPE_TRY_ASSIGN(device, kernels::cuda::open_device(ranks.rank()));
    auto link = make_nccl_link(*device, {});
    TROUPE_TRY_ASSIGN(other, kernels::cuda::open_device(4));
    other->enter();
    TROUPE_TRY(ranks.use(std::move(link)));
    line.say(ranks.link_name());
    (void)device.release();  // the gang must end before it
    return ranks.barrier();
  });
  for (const int rank : {0, 1})
    EXPECT_EQ(gang.hear(rank), "NCCL 2.28.9");
}

#ifdef TROUPE_PINNED_NCCL
// NCCL itself, which knows nothing of emulated devices: it says so, and the ranks go on.
TEST(NcclForming, NcclItselfRefusesDevicesThatAreNone) {
  Setting setting;
  setting.before = [](int) { set_variable("TROUPE_NCCL_LIBRARY", TROUPE_PINNED_NCCL); };
  DeviceGang gang(
      2,
      [](Collectives& ranks, Device& device, const Line& line) -> core::Result<void> {
        Sequence sequence(ranks, 3, 5000, device.memory());
        for (int i = 0; i < 5; ++i)
          TROUPE_TRY(sequence.step());
        line.say(g_logged.at(0).substr(0, 48) + ": " + std::to_string(sequence.wrong()) + " wrong");
        return {};
      },
      setting);
  gang.expect_all("the devices of policy have no link (rank 0: NCCL: 0 wrong");
}
#endif

// ---- who is named when several ranks fail ----

// A link to which no rank can connect. Rank 1 begins when the test says so.
class FailingLink final : public DeviceLink {
 public:
  FailingLink(int rank, const Line& line) : rank_(rank), line_(line) {}
  std::string name() const override { return "link"; }
  std::string device() const override { return std::to_string(rank_); }
  bool takes(const core::Memory&) const override { return false; }
  void prefer_interface(const std::string&) override {
    if (rank_ == 0) return;
    line_.say("waits");
    line_.hear();
  }
  core::Result<LinkId> new_id() override { return LinkId{}; }
  core::Result<void> connect(const LinkId&, int, int) override {
    return core::fail(core::ErrorCode::kResources, "no room");
  }
  core::Result<void> start(std::span<const Move>) override { return {}; }
  core::Result<bool> done() override { return false; }
  void abort() noexcept override {  // the others have been told
    if (rank_ == 1) line_.say("failed");
  }

 private:
  const int rank_;
  const Line& line_;
};

// Rank 0 hears of rank 1's failure before it begins itself.
TEST(LinkFailures, TheLowestThatFailsByItselfIsNamedWhoeverIsFaster) {
  Gang gang(2, Ways::kWindow, [](Collectives& ranks, const Line& line) -> core::Result<void> {
    using Link = std::unique_ptr<DeviceLink>;
    TROUPE_TRY(ranks.use(core::Result<Link>(std::make_unique<FailingLink>(ranks.rank(), line))));
    line.say(g_logged.at(0));
    return {};
  });
  EXPECT_EQ(gang.hear(1), "waits");
  gang.rank(0).wait_until_asleep();
  gang.rank(0).freeze();
  gang.rank(1).line().say("begin");
  EXPECT_EQ(gang.hear(1), "failed");
  gang.rank(0).go_on();
  for (const int rank : {0, 1})
    EXPECT_EQ(gang.hear(rank),
              "the devices of policy have no link (rank 0: no room); their bytes go by way of the "
              "host");
}

// ---- losses while a link is made: rank 1 never comes to be connected ----

TEST(NcclForming, ARankThatIsKilledIsNamedToAll) {
  const troupe::test::TempFolder folder;
  Gang gang(3, Ways::kWindow, [&](Collectives& ranks, const Line&) -> core::Result<void> {
    use_emulators(folder.path(), ranks.rank() == 1 ? "lose" : "");
    TROUPE_TRY_ASSIGN(device, kernels::cuda::open_device(ranks.rank()));
    return ranks.use(make_nccl_link(*device.release(), {}));
  });
  gang.rank(1).wait_until_stopped();
  gang.rank(1).kill();
  for (const int rank : {0, 2})
    EXPECT_EQ(gang.hear(rank), "peer lost: rank 1 of policy is gone") << "rank " << rank;
}

TEST(NcclForming, AbortEndsIt) {
  const troupe::test::TempFolder folder;
  Gang gang(2, Ways::kWindow, [&](Collectives& ranks, const Line& line) -> core::Result<void> {
    use_emulators(folder.path(), ranks.rank() == 1 ? "lose" : "");
    TROUPE_TRY_ASSIGN(device, kernels::cuda::open_device(ranks.rank()));
    std::thread aborter;
    if (ranks.rank() == 1) {
      aborter = std::thread([&] {
        line.hear();
        ranks.abort();
      });
    }
    const auto used = ranks.use(make_nccl_link(*device.release(), {}));
    if (aborter.joinable()) aborter.join();
    return used;
  });
  gang.rank(1).wait_until_stopped();
  gang.rank(1).line().say("abort");
  gang.rank(1).go_on();
  EXPECT_EQ(gang.hear(1), "closed: rank 1 of policy was aborted");
  EXPECT_EQ(gang.hear(0), "peer lost: rank 1 of policy was aborted");
}

}  // namespace
}  // namespace troupe::collective::test
